// Package credentialprovider gets credentials for images from programs on the node, the kubelet's image credential
// providers: what is configured (settings.go, decide_config.go), which images a program is for (decide_pattern.go), how
// it is run (run.go), what its answer means (decide_answer.go), which requests share one (share.go), and
// what a Pod gets (providers.go).
package credentialprovider
