module keelson.dev/services/nodeagent

go 1.26.0
