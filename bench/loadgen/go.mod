module loadgen

go 1.25
