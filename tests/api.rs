//! A real Kubernetes API and the real engine against it.
