// Package imagepull decides how images come to the node and which Pods may use them: how many are pulled at once
// (settings.go), what is recorded of pulls (pull.go, records.go), and which Pods may use an image without a pull of
// their own (decide.go).
package imagepull

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/spf13/pflag"
	"golang.org/x/sync/semaphore"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
)

// The flags: those of the kubelet, and two named after fields of its configuration.
const (
	flagSerialize   = "serialize-image-pulls"
	flagMaxParallel = "max-parallel-image-pulls"
	flagPolicy      = "image-pull-credentials-verification-policy"
	flagAllowlist   = "preloaded-images-verification-allowlist"
)

// Settings are the flags as given; nil stands for a flag that was not. The zero value pulls one image at a time.
type Settings struct {
	Serialize   *bool
	MaxParallel *int
	// Policy determines which images on the node only Pods with credentials may use; empty is the default.
	Policy string
	// Allowlist names images, in full or with a trailing /*, that need no credentials under one of the policies.
	Allowlist []string
}

// policies are those of the API; the first is the default.
var policies = []kubeletv1beta1.ImagePullCredentialsVerificationPolicy{kubeletv1beta1.NeverVerifyPreloadedImages,
	kubeletv1beta1.NeverVerify, kubeletv1beta1.NeverVerifyAllowlistedImages, kubeletv1beta1.AlwaysVerify}

func (s *Settings) policy() kubeletv1beta1.ImagePullCredentialsVerificationPolicy {
	return cmp.Or(kubeletv1beta1.ImagePullCredentialsVerificationPolicy(s.Policy), policies[0])
}

// AddFlags adds the flags.
func (s *Settings) AddFlags(fs *pflag.FlagSet) {
	fs.BoolFunc(flagSerialize,
		"pull one image at a time; true by default, unless --max-parallel-image-pulls is above 1",
		func(text string) error {
			value, err := strconv.ParseBool(text)
			if err != nil {
				return errors.New("must be true or false")
			}
			s.Serialize = &value
			return nil
		})
	fs.Func(flagMaxParallel,
		"how many images are pulled at once at most; without it, all if --serialize-image-pulls is false",
		func(text string) error {
			value, err := strconv.ParseInt(text, 10, 32)
			if err != nil {
				return errors.New("must be a whole number")
			}
			n := int(value)
			s.MaxParallel = &n
			return nil
		})
	fs.StringVar(&s.Policy, flagPolicy, string(s.policy()),
		"of which images on the node a Pod must show that it may pull them: NeverVerify, NeverVerifyPreloadedImages, "+
			"NeverVerifyAllowlistedImages or AlwaysVerify")
	fs.StringSliceVar(&s.Allowlist, flagAllowlist, s.Allowlist,
		"images that were on the node before and need no credentials with NeverVerifyAllowlistedImages, without tag "+
			"or digest, comma-separated; /* at the end stands for any rest")
}

// Validate returns an error if the flags are invalid.
func (s *Settings) Validate() error {
	if s.MaxParallel != nil && *s.MaxParallel < 1 {
		return fmt.Errorf("--%s: %d must be at least 1", flagMaxParallel, *s.MaxParallel)
	}
	if s.Serialize != nil && *s.Serialize && s.MaxParallel != nil && *s.MaxParallel > 1 {
		return fmt.Errorf("--%s: %d must be 1 unless --%s is false", flagMaxParallel, *s.MaxParallel, flagSerialize)
	}
	if !slices.Contains(policies, s.policy()) {
		return fmt.Errorf("--%s: %q must be one of %v", flagPolicy, s.Policy, policies)
	}
	if len(s.Allowlist) > 0 && s.policy() != kubeletv1beta1.NeverVerifyAllowlistedImages {
		return fmt.Errorf("--%s: must be empty unless --%s is %s", flagAllowlist, flagPolicy,
			kubeletv1beta1.NeverVerifyAllowlistedImages)
	}
	for _, entry := range s.Allowlist {
		if _, err := normal(entry); err != nil {
			return fmt.Errorf("--%s: %q %w", flagAllowlist, entry, err)
		}
	}
	return nil
}

// Turns returns the semaphore of which each pull holds 1 while it runs; the longest waiting pull comes first.
func (s *Settings) Turns() *semaphore.Weighted { return semaphore.NewWeighted(s.limit()) }

// Show returns the settings in force; nil for many means unlimited.
func (s *Settings) Show() (serial bool, many *int32) {
	limit := s.limit()
	if limit <= math.MaxInt32 {
		n := int32(limit)
		many = &n
	}
	return limit == 1, many
}

// limit returns how many images are pulled at once.
func (s *Settings) limit() int64 {
	switch {
	case s.Serialize != nil && *s.Serialize, s.Serialize == nil && s.MaxParallel == nil:
		return 1
	case s.MaxParallel == nil:
		return math.MaxInt64
	}
	return int64(*s.MaxParallel)
}
