/**
 * What support modules end after each test or test file. Test files share their worker (vitest.config.ts),
 * and a module is loaded once per worker, so a hook of its own would run for the first file only.
 */
type End = () => unknown

const ofTests: End[] = []
const ofFiles: End[] = []

export function afterEachTest(end: End): void {
  ofTests.push(end)
}

export function afterEachFile(end: End): void {
  ofFiles.push(end)
}

export async function endTest(): Promise<void> {
  await Promise.all(ofTests.map((end) => end()))
}

export async function endFile(): Promise<void> {
  await Promise.all(ofFiles.map((end) => end()))
}
