// Package linkaddress gives links of the mesh hardware addresses that every node computes alike.
package linkaddress

import "crypto/sha256"

// Of returns the hardware address for a text: a unicast, locally administered address.
func Of(text string) [6]byte {
	sum := sha256.Sum256([]byte(text))
	address := [6]byte(sum[:6])
	address[0] = address[0]&^1 | 2
	return address
}
