// Package docs holds the repository's Markdown and comments to what they claim: its tests run the code in the Markdown
// files as it is shown, and count words that make comments hard to read.
package docs
