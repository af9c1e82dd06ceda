module keelson.dev/cli

go 1.26.0

require github.com/spf13/cobra v1.0.0

replace github.com/spf13/cobra => ../fake/cobra
