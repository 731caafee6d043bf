/** Encrypts what the store and its backups must not reveal. */
export interface Sealer {
  /** Returns the text encrypted, in Base64; it can be opened only with the same context. */
  seal(text: string, context: string): string
  /** Returns the text, or null if it was sealed with another key or context, or is damaged. */
  open(sealed: string, context: string): string | null
}
