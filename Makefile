# make help shows the targets. lab/install (root) installs what they need beyond cargo.
PREFIX ?= /usr
CNI_BIN ?= /opt/cni/bin
DESTDIR ?=
CARGO ?= cargo
IMAGE_BUILDER ?= podman
# the image's processor, amd64 or arm64, and more arguments of the builder
MACHINE := $(shell uname -m)
IMAGE_ARCH ?= $(patsubst aarch64,arm64,$(patsubst x86_64,amd64,$(MACHINE)))
IMAGE_ARGS ?=
export PATH := $(PATH):$(HOME)/.cargo/bin
TARGET := $(or $(CARGO_TARGET_DIR),target)
RELEASE := $(TARGET)/release
WINDOWS := x86_64-pc-windows-gnu
# programs for it need no libraries of the system
STATIC := $(addsuffix -unknown-linux-musl,$(if $(filter amd64,$(IMAGE_ARCH)),x86_64)$(if $(filter arm64,$(IMAGE_ARCH)),aarch64))
STATIC_CC := $(if $(filter $(MACHINE)-%,$(STATIC)),gcc,$(firstword $(subst -, ,$(STATIC)))-linux-gnu-gcc)
# most tests spend most of their time waiting for other programs
TEST_THREADS ?= $(shell echo $$((2 * $$(nproc))))
# stories of make sim
SEEDS ?= 10000
# options of lab/chaos-test: --doses 5 --seconds 20 makes a short run
CHAOS ?=

.DEFAULT_GOAL := build
.PHONY: help build image image-test demo demo-daemonset demo-down test long policies cycles services takeover skew update chart kernel sim chaos e2e e2e-pods lint bench install release windows clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "  variables: PREFIX=$(PREFIX) CNI_BIN=$(CNI_BIN) DESTDIR=$(DESTDIR) IMAGE_BUILDER=$(IMAGE_BUILDER)"

build: ## build ovnkube and ovn-k8s-cni-overlay, optimised, in target/release; links in _output/go/bin
	$(CARGO) build --release --locked -p ovnkube -p ovn-k8s-cni-overlay
	@mkdir -p _output/go/bin && ln -sf $(abspath $(RELEASE)/ovnkube $(RELEASE)/ovn-k8s-cni-overlay) _output/go/bin/

demo: ## start a cluster of three nodes on this machine, with pods that reach each other (root)
	@lab/demo up

demo-daemonset: ## the same with everything in pods, installed on bare hosts with kubectl apply -f dist/yaml (root)
	@DEMO_UP="--ovn 25.03 --db pods --impl daemonset" lab/demo up

image: ## build the image ovnkube:latest with static programs, and a list of what is in it; IMAGE_BUILDER=podman, buildah or docker; IMAGE_ARCH=amd64 or arm64
	@[ -n "$(STATIC)" ] || { echo "image: IMAGE_ARCH must be amd64 or arm64; it is \"$(IMAGE_ARCH)\"" >&2; exit 2; }
	@[ -d "$$(rustc --print target-libdir --target $(STATIC))" ] || \
	  { echo "image: Rust has no target $(STATIC) here: rustup target add $(STATIC), or lab/install release" >&2; exit 1; }
	env CC_$(subst -,_,$(STATIC))=$(STATIC_CC) CARGO_TARGET_$(shell echo $(STATIC) | tr a-z- A-Z_)_LINKER=$(STATIC_CC) \
	  $(CARGO) build --release --locked -p ovnkube -p ovn-k8s-cni-overlay --target $(STATIC)
	install -D -m 755 -t _output/image/$(IMAGE_ARCH) $(TARGET)/$(STATIC)/release/ovnkube $(TARGET)/$(STATIC)/release/ovn-k8s-cni-overlay
	rm -f _output/image/$(IMAGE_ARCH)/ovnkube-image.cdx.json
	$(IMAGE_BUILDER) build -f dist/images/Dockerfile --platform linux/$(IMAGE_ARCH) --build-arg PROGRAMS=_output/image/$(IMAGE_ARCH) $(IMAGE_ARGS) -t ovnkube:latest .
	@dist/image-sbom $(IMAGE_BUILDER) _output/image/$(IMAGE_ARCH)/ovnkube-image.cdx.json || \
	  echo "image: built, but there is no list of what is in it" >&2

demo-down: ## remove the demo's cluster
	@lab/demo down

test: ## unit tests, then real clusters: OVN 26.03, 25.03 and 23.03, kills, Raft (root)
	@.ci/step "what is missing" lab/install
	@.ci/step "build for the lab" $(CARGO) build --profile lab --locked -p ovnkube -p ovn-k8s-cni-overlay -p ovnkube-policy-truth
	@.ci/step "cargo test" env RUST_TEST_THREADS=$(TEST_THREADS) $(CARGO) test --workspace --locked
	@.ci/step "documents" tests/docs/run
	@.ci/step "real clusters" tests/lab/run

policies: ## NetworkPolicies in full: 2,000 generated ones, 200 updates and 20 restarts under traffic (root)
	@.ci/step "what is missing" lab/install
	@.ci/step "build for the lab" $(CARGO) build --profile lab --locked -p ovnkube -p ovn-k8s-cni-overlay -p ovnkube-policy-truth
	@.ci/step "policies" tests/lab/run isolation-all

sim: ## simulated clusters with SEEDS (10000) stories of events and faults, then planted faults that must be found; docs/reliability.md
	@.ci/step "build the simulation" $(CARGO) test --profile lab --locked -p ovnkube-tests --test sim --no-run
	@.ci/step "$(SEEDS) stories" env SIM_SEEDS=$(SEEDS) $(CARGO) test --profile lab --locked -p ovnkube-tests --test sim -- --nocapture all_seeds_hold found_stories
	@.ci/step "planted faults" tests/sim/planted/run

chaos: ## faults in doses on real clusters: databases, masters, API server, etcd, northd, disks, an hour of pods; many hours, or CHAOS="--doses 5 --seconds 20"; docs/reliability.md (root)
	@.ci/step "what is missing" lab/install
	@.ci/step "build for the lab" $(CARGO) build --profile lab --locked -p ovnkube -p ovn-k8s-cni-overlay
	@.ci/step "chaos" env CHAOS="$(CHAOS)" tests/lab/run chaos

services: ## packets to services: both gateway modes, IPv4, IPv6 and dual stack, OVN 26.03 and 23.03 (root)
	@.ci/step "what is missing" lab/install
	@.ci/step "build for the lab" $(CARGO) build --profile lab --locked -p ovnkube -p ovn-k8s-cni-overlay
	@.ci/step "services" tests/lab/run services-all

e2e: ## the network tests of Kubernetes, all that can run here (root)
	@.ci/step "what is missing" lab/install
	@.ci/step "upstream's e2e.test" lab/install e2e
	@.ci/step "build for the lab" $(CARGO) build --profile lab --locked -p ovnkube -p ovn-k8s-cni-overlay
	@.ci/step "e2e" tests/lab/run e2e

e2e-pods: ## the groups of e2e that docs/e2e.md names, with everything in pods (root)
	@.ci/step "what is missing" lab/install
	@.ci/step "upstream's e2e.test" lab/install e2e
	@.ci/step "build for the lab" $(CARGO) build --profile lab --locked -p ovnkube -p ovn-k8s-cni-overlay
	@.ci/step "e2e, everything in pods" tests/lab/run e2e-pods

takeover: ## change over from a running ovn-kubernetes and back while traffic continues; PEER_BIN=directory of its ovnkube and CNI program (root)
	@.ci/step "what is missing" lab/install
	@.ci/step "build for the lab" $(CARGO) build --profile lab --locked -p ovnkube -p ovn-k8s-cni-overlay
	@.ci/step "takeover" tests/lab/run takeover

skew: ## masters and agents of two versions beside each other; OLD_BIN=directory of the other one's ovnkube and CNI program (root)
	@.ci/step "what is missing" lab/install
	@.ci/step "build for the lab" $(CARGO) build --profile lab --locked -p ovnkube -p ovn-k8s-cni-overlay
	@.ci/step "skew" tests/lab/run skew

update: ## everything in pods changes to another version and back under traffic; OLD_RELEASE=directory with its chart and image (root)
	@.ci/step "what is missing" lab/install
	@.ci/step "build for the lab" $(CARGO) build --profile lab --locked -p ovnkube -p ovn-k8s-cni-overlay
	@.ci/step "update" tests/lab/run update

chart: ## the chart of ovn-kubernetes v1.3.0 with the image of the checkout; CHART_DIR=its directory helm/ovn-kubernetes (root)
	@.ci/step "what is missing" lab/install
	@.ci/step "build for the lab" $(CARGO) build --profile lab --locked -p ovnkube -p ovn-k8s-cni-overlay
	@.ci/step "chart" tests/lab/run chart

kernel: ## the datapath of the kernel, also over a bond and a VLAN; in a virtual machine if this kernel has no openvswitch (root, amd64)
	@.ci/step "what is missing" lab/install
	@modprobe -q openvswitch || .ci/step "a virtual machine" lab/install kernel
	@.ci/step "build for the lab" $(CARGO) build --profile lab --locked -p ovnkube -p ovn-k8s-cni-overlay -p ovnkube-policy-truth
	@modprobe -q openvswitch || export LAB_SLOW=8 VM=lab/vm; .ci/step "kernel" $$VM tests/lab/run kernel
	@modprobe -q openvswitch || export LAB_SLOW=8 VM=lab/vm; .ci/step "kernel, more" $$VM tests/lab/run kernel-more

long: ## what `make lint test` omits: full cluster-test, active-backup, the demo, bench --quick, install (root); docs/quality.md
	@.ci/step "what is missing" lab/install
	@.ci/step "build for the lab" $(CARGO) build --profile lab --locked -p ovnkube -p ovn-k8s-cni-overlay
	@.ci/step "newest OVN, Pacemaker" lab/install newest pacemaker
	@.ci/step "clusters in full" tests/lab/run full newest raft-pods update-ovn ic masters pacemaker
	@.ci/step "demo" env CLUSTER_NAME=ovnklong CLUSTER_NET4=172.27.0 lab/demo up
	@.ci/step "demo taken down" env CLUSTER_NAME=ovnklong CLUSTER_NET4=172.27.0 lab/demo down
	@.ci/step "bench --quick" bench/run --quick
	@.ci/step "install" $(MAKE) install DESTDIR=$(TARGET)/long
	@.ci/step "installed" $(TARGET)/long$(PREFIX)/bin/ovnkube --version
	@rm -r $(TARGET)/long

release: ## the files of a release for amd64 and arm64 in target/dist, and a test of them (root); docs/releases.md
	@.ci/step "what is missing" lab/install packages toolchains k8s helm release
	@.ci/step "release" dist/release $(TARGET)/dist
	@.ci/step "test of the release" tests/release/run $(TARGET)/dist

image-test: ## `make image` for amd64 and arm64 with buildah and a base image of Debian's packages, and a test of the images (root); docs/releases.md
	@.ci/step "what is missing" lab/install packages toolchains builder release
	@.ci/step "images" tests/release/builder

windows: ## ovnkube.exe and ovn-k8s-cni-overlay.exe in _output/windows, and a test of them with wine (root); docs/releases.md
	@.ci/step "what is missing" lab/install windows
	@.ci/step "build for Windows" $(CARGO) build --release --locked -p ovnkube -p ovn-k8s-cni-overlay --target $(WINDOWS)
	@mkdir -p _output/windows _output/go && ln -sfn ../windows _output/go/windows
	@cp $(TARGET)/$(WINDOWS)/release/ovnkube.exe $(TARGET)/$(WINDOWS)/release/ovn-k8s-cni-overlay.exe _output/windows/
	@.ci/step "test of the programs" tests/release/windows _output/windows

cycles: ## add and remove a node 100 times: rows, flows, rules, routes and open files stay the same (root)
	@.ci/step "what is missing" lab/install
	@.ci/step "build for the lab" $(CARGO) build --profile lab --locked -p ovnkube -p ovn-k8s-cni-overlay
	@.ci/step "cycles" tests/lab/run cycles-all

lint: ## formatting, clippy, shell syntax, rules of the repository, licences of dependencies
	@command -v $(CARGO) >/dev/null || .ci/step "what is missing" lab/install packages toolchains
	@.ci/step "format" $(CARGO) fmt --all --check
	@.ci/step "clippy" $(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	@.ci/step "rules of the repository" .ci/tidy
	@.ci/step "dependencies" .ci/deny

bench: ## run the benchmarks; writes bench/results.md
	@bench/run

# no cargo if the binaries are built already: `make build` as a user, `sudo make install`
install: $(RELEASE)/ovnkube $(RELEASE)/ovn-k8s-cni-overlay ## install below $(PREFIX), the CNI program to $(CNI_BIN) (all below DESTDIR)
	@for dir in '$(PREFIX)/' '$(CNI_BIN)'; do case $$dir in /*) ;; *) echo "install: PREFIX and CNI_BIN must begin with /; one of them is \"$$dir\"" >&2; exit 2 ;; esac; done
	@case '$(DESTDIR)$(PREFIX)$(CNI_BIN)' in *[!A-Za-z0-9/._+~@:-]*) echo "install: DESTDIR, PREFIX and CNI_BIN may have letters, digits and /._+~@:- only; they are \"$(DESTDIR)\", \"$(PREFIX)\", \"$(CNI_BIN)\"" >&2; exit 2 ;; esac
	dist/put 755 $(DESTDIR)$(PREFIX)/bin $(RELEASE)/ovnkube
	dist/put 755 $(DESTDIR)$(PREFIX)/bin dist/interconnect/kubectl-ko
	dist/put 755 $(DESTDIR)$(CNI_BIN) $(RELEASE)/ovn-k8s-cni-overlay
	EDIT='s,=/usr/bin/ovnkube,=$(PREFIX)/bin/ovnkube,' dist/put 644 $(DESTDIR)$(PREFIX)/lib/systemd/system dist/systemd/*.service
	dist/put 644 $(DESTDIR)$(PREFIX)/share/man/man8 dist/man/ovnkube.8
	NAME=ovnkube dist/put 644 $(DESTDIR)$(PREFIX)/share/bash-completion/completions dist/completions/ovnkube.bash
	NAME=_ovnkube dist/put 644 $(DESTDIR)$(PREFIX)/share/zsh/vendor-completions dist/completions/ovnkube.zsh
	dist/put 644 $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d dist/completions/ovnkube.fish
	dist/put 644 $(DESTDIR)$(PREFIX)/share/doc/ovnkube LICENSE NOTICE CHANGELOG.md config/ovn_k8s.conf
	dist/put 644 $(DESTDIR)$(PREFIX)/share/ovnkube/dist/yaml dist/yaml/*
	dist/put 644 $(DESTDIR)$(PREFIX)/share/ovnkube/dist/identity dist/identity/*
	dist/put 644 $(DESTDIR)$(PREFIX)/share/ovnkube/dist/yaml-raft dist/yaml-raft/*
	dist/put 644 $(DESTDIR)$(PREFIX)/share/ovnkube/dist/uninstall dist/uninstall/*
	dist/put 644 $(DESTDIR)$(PREFIX)/share/ovnkube/dist/interconnect dist/interconnect/*.yaml
	dist/put 755 $(DESTDIR)$(PREFIX)/share/ovnkube/dist/images dist/images/install-ic-server.sh
	dist/put 644 $(DESTDIR)$(PREFIX)/share/ovnkube/dist/systemd dist/systemd/rbac-kubelet.yaml
	dist/put 644 $(DESTDIR)$(PREFIX)/share/ovnkube/dist/tls dist/tls/options
	dist/put 755 $(DESTDIR)$(PREFIX)/share/ovnkube/dist/tls dist/tls/issue
$(RELEASE)/ovnkube $(RELEASE)/ovn-k8s-cni-overlay &:
	$(MAKE) build

clean: ## remove cargo's build output (the lab's parts stay: lab/install)
	$(CARGO) clean
	rm -rf _output
