// Package podroute distinguishes a mesh's routes to the Pods of other nodes from all other routes. A nodeagent
// leaves them when it ends, because Pods run on: who starts it takes them for the mesh's own, and away after it.
package podroute

// Protocol marks such routes (rtm_protocol of rtnetlink(7)). Those into another mesh's range have it as well.
const Protocol = 75
