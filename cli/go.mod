module keelson.dev/cli

go 1.26.0
