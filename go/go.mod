module github.com/freestone-alloc/freestone/go

go 1.24
