module keelson.dev/services/podgc

go 1.26.0
