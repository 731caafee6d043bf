/** For `vi.waitFor`: its own limit of 1 s is too short on a busy machine. */
export const WAIT = { timeout: 60_000, interval: 20 }
