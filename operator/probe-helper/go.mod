module headroom.dev/probe-helper

go 1.24
