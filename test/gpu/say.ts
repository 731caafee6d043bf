/** Output of `make test-gpu`: the claims that held, and the first that did not. */
export function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

/** Throws if the claim does not hold. */
export function expect(isSo: boolean, claim: string): void {
  if (!isSo) throw new Error(`does not hold: ${claim}`)
  say(`ok: ${claim}`)
}
