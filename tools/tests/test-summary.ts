import { appendFileSync } from 'node:fs'
import type { Reporter, SerializedError, TestCase, TestModule } from 'vitest/node'

const SHOWN = 10

/**
 * Prints the slowest tests after the run, then what failed: where a log is cut, its end remains. Runs that
 * share a log write what failed into the file TEST_FAILURES.
 */
export default class TestSummary implements Reporter {
  onTestRunEnd(files: readonly TestModule[], outsideTests: readonly SerializedError[]): void {
    const tests = files.flatMap((file) => [...file.children.allTests()])
    if (tests.length > SHOWN) printSlowest(tests)
    const failures = [...files.flatMap(failuresOf), ...outsideTests.map(outsideTest)]
    if (failures.length === 0) return
    const text = `\nFailed:\n${failures.join('\n')}\n`
    const file = process.env['TEST_FAILURES']
    if (file === undefined) console.log(text)
    else appendFileSync(file, text)
  }
}

function printSlowest(tests: readonly TestCase[]): void {
  console.log(`\nThe ${SHOWN} slowest of ${tests.length} tests:`)
  const slowest = tests
    .map((test) => ({ ms: test.diagnostic()?.duration ?? 0, name: nameOf(test) }))
    .toSorted((a, b) => b.ms - a.ms || (a.name < b.name ? -1 : 1))
    .slice(0, SHOWN)
  for (const { ms, name } of slowest) console.log(`${(ms / 1000).toFixed(1).padStart(7)} s  ${name}`)
}

/** A line for each failed test, and for each file that could not be run. */
function failuresOf(file: TestModule): string[] {
  const failedTests = [...file.children.allTests('failed')]
  return [
    ...file.errors().map(({ message }) => `  ${file.relativeModuleId}: ${firstLine(message)}`),
    ...failedTests.map((test) => `  ${nameOf(test)}: ${firstLine(test.result().errors?.[0]?.message ?? '')}`),
  ]
}

function outsideTest({ name, message, stack }: SerializedError): string {
  return `  outside any test: ${stack ?? `${name ?? 'Error'}: ${message}`}`
}

function nameOf(test: TestCase): string {
  return `${test.module.relativeModuleId} > ${test.fullName}`
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? ''
}
