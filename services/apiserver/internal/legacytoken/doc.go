// Package legacytoken keeps the Secrets of type kubernetes.io/service-account-token. Each gets a token of the account
// that it names, and goes with the account. One that was made for its account and was not used for long is first
// refused, and then deleted.
//
// It is a part of the apiserver because it signs, and reads what is in Secrets: see docs/decisions/0021. Every
// apiserver runs it; each write is one object at the version that was read, so that they, and one that was killed
// amid it, do no harm to each other.
package legacytoken
