// Package encryption encrypts what is stored, by the library's providers and as an EncryptionConfiguration says.
package encryption
