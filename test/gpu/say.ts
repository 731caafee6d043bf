/** What `make test-gpu` prints: claims that held, and the first that did not. */
export function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

/** Throws when it is not so. */
export function expect(isSo: boolean, claim: string): void {
  if (!isSo) throw new Error(`not so: ${claim}`)
  say(`ok: ${claim}`)
}
