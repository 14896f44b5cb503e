module example.com/refused

go 1.26.0
