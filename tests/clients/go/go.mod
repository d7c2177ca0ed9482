module tour

go 1.24
