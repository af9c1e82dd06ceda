module keelson.dev/tools

go 1.26.0

require golang.org/x/mod v0.42.0

require go.yaml.in/yaml/v3 v3.0.4
