/** `headroom sim check [FILES…]`. */
import { differencesOf } from '../../simulator/report/compare.ts'
import { expectedFileOf, expectedOf } from '../../services/runs/check-run.ts'
import type { CheckAnswer, CheckTask, ExpectedResult } from '../../services/runs/check-run.ts'
import { EXIT_DIGEST_MISMATCH, EXIT_FAILED, EXIT_OK } from '../../services/exit-codes.ts'
import { withProgress } from '../output/progress.ts'
import { writeOutput } from '../../services/output-file.ts'
import { jsonText } from '../../services/runs/run-folder.ts'
import { checkedScenarioFiles } from './scenario-files.ts'
import { runInWorkers } from '../../services/workers/worker-pool.ts'
import { workerUrl } from '../../services/workers/worker-url.ts'

export interface SimCheckOptions {
  readonly update?: boolean
  readonly jobs: number
  readonly json?: boolean
}

type Verdict = 'ok' | 'recorded' | 'unrecorded' | 'mismatch' | 'failed'

interface Checked extends CheckAnswer {
  readonly verdict: Verdict
}

export async function simCheck(files: readonly string[], options: SimCheckOptions): Promise<number> {
  const tasks = (files.length > 0 ? files : checkedScenarioFiles()).map((file): CheckTask => ({ file }))
  const answers = await withProgress('sim check', (onProgress) =>
    runInWorkers<CheckTask, CheckAnswer>(workerUrl('runs/check-worker'), tasks, {
      processes: options.jobs,
      onProgress,
    }),
  )
  const checked = answers.map((answer): Checked => ({
    ...answer,
    verdict: verdictOn(answer, options.update === true),
  }))
  for (const { verdict, file, result } of checked)
    if (verdict === 'recorded' && result !== null) writeExpected(expectedFileOf(file), expectedOf(result))
  process.stdout.write(
    options.json === true
      ? `${JSON.stringify(checked.map(jsonOf), null, 2)}\n`
      : checked.map(textOf).join(''),
  )
  return exitCodeOf(checked)
}

function writeExpected(path: string, expected: ExpectedResult): void {
  writeOutput(`--update ${path}`, path, jsonText(expected))
}

function verdictOn({ result, violations, expected }: CheckAnswer, isUpdate: boolean): Verdict {
  if (violations.length > 0 || result === null) return 'failed'
  if (isUpdate) return 'recorded'
  if (expected === null) return 'unrecorded'
  return expected.digest === result.digest ? 'ok' : 'mismatch'
}

function textOf(checked: Checked): string {
  const { verdict, file, scenario, result, violations, expected } = checked
  switch (verdict) {
    case 'ok':
      return `ok        ${scenario}\n`
    case 'recorded':
      return [`recorded  ${scenario}: ${expectedFileOf(file)}\n`, ...changesOf(checked)].join('')
    case 'unrecorded':
      return (
        `ok        ${scenario} (no digest is recorded; to record it: \`headroom sim check --update ` +
        `${file}\`)\n`
      )
    case 'mismatch':
      return [
        `MISMATCH  ${scenario}: the digest is ${result?.digest}, but ${expected?.digest} is recorded\n`,
        ...differencesOf(expected, result).map((difference) => `            ${difference}\n`),
        '          The decisions differ from the recording. If that is intended: headroom sim check ' +
          `--update ${file}\n`,
        `          repeat: headroom sim check ${file}\n`,
      ].join('')
    case 'failed':
      return [
        `FAILED    ${scenario}\n`,
        ...violations.map((violation) => `            ${violation}\n`),
        `          repeat: headroom sim check ${file}\n`,
      ].join('')
  }
}

/** The differences that `--update` recorded. */
function changesOf({ expected, result }: Checked): string[] {
  if (expected === null || expected.digest === result?.digest) return []
  const digests = `digest: ${expected.digest} → ${result?.digest}`
  return [digests, ...differencesOf(expected, result)].map((difference) => `            ${difference}\n`)
}

function jsonOf({ file, scenario, verdict, result, violations, expected }: Checked): unknown {
  return {
    file,
    scenario,
    verdict,
    digest: result?.digest ?? null,
    expected_digest: expected?.digest ?? null,
    violations,
    result,
  }
}

function exitCodeOf(checked: readonly Checked[]): number {
  if (checked.some(({ verdict }) => verdict === 'failed')) return EXIT_FAILED
  return checked.some(({ verdict }) => verdict === 'mismatch') ? EXIT_DIGEST_MISMATCH : EXIT_OK
}
