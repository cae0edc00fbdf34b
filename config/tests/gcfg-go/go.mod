module gcfgread

go 1.24

require gopkg.in/gcfg.v1 v1.2.3

require gopkg.in/warnings.v0 v0.1.2 // indirect
