// Command keelson-hostport is the CNI plugin that leads ports of the machine to Pods.
package main

import "keelson.dev/cli/internal/hostport"

func main() { hostport.Main() }
