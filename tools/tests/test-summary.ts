import type { Reporter, TestCase, TestModule } from 'vitest/node'

const SHOWN = 10

/** Prints the slowest tests after the run. */
export default class SlowestTests implements Reporter {
  onTestRunEnd(files: readonly TestModule[]): void {
    const tests = files
      .flatMap((file) => [...file.children.allTests()])
      .map((test) => ({ ms: test.diagnostic()?.duration ?? 0, name: nameOf(test) }))
      .toSorted((a, b) => b.ms - a.ms || (a.name < b.name ? -1 : 1))
    if (tests.length <= SHOWN) return
    console.log(`\nThe ${SHOWN} slowest of ${tests.length} tests:`)
    for (const { ms, name } of tests.slice(0, SHOWN))
      console.log(`${(ms / 1000).toFixed(1).padStart(7)} s  ${name}`)
  }
}

function nameOf(test: TestCase): string {
  return `${test.module.relativeModuleId} > ${test.fullName}`
}
