/**
 * `make bench`: measures, prints a table, writes bench-results.json; exits with 1 when a floor is missed or a
 * bench fails, 2 on invalid arguments. `node test/bench/main.ts [--profile] [NAME …]` runs only some; with
 * --profile each process prints where it spent its time.
 */
import { spawnSync, type SpawnSyncReturns } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { type Bench, BENCHES } from './benches.ts'
import { profileFlags, topSelfTimes } from './profile.ts'
import { misses, rowsOf, tableOf } from './table.ts'
import { MEASURE_NAMES, type MeasureName, type Reading, TARGETS } from './targets.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const PROFILES = join(ROOT, 'node_modules/.cache/bench-profiles')

const { isProfiled, wanted } = readArguments()
const readings: Reading[] = []
for (const bench of BENCHES) {
  if (bench.names.some((name) => wanted.includes(name))) readings.push(...measure(bench, isProfiled))
}
const rows = rowsOf(readings, TARGETS)
console.log(`\n${tableOf(readings, TARGETS)}`)
writeFileSync(join(ROOT, 'bench-results.json'), `${JSON.stringify(rows, null, 2)}\n`)
process.exitCode = rows.some(misses) || readings.some(({ value }) => value === 'failed') ? 1 : 0

function readArguments(): { readonly isProfiled: boolean; readonly wanted: readonly MeasureName[] } {
  const { values, positionals } = parseArgs({
    options: { profile: { type: 'boolean', default: false } },
    allowPositionals: true,
  })
  const wanted = MEASURE_NAMES.filter((name) => positionals.length === 0 || positionals.includes(name))
  const unknown = positionals.filter((name) => !MEASURE_NAMES.some((each) => each === name))
  if (unknown.length > 0) {
    console.error(`unknown bench: ${unknown.join(', ')}. Available: ${MEASURE_NAMES.join(', ')}`)
    process.exit(2)
  }
  return { isProfiled: values.profile, wanted }
}

function measure({ names, heapMib }: Bench, isProfiled: boolean): readonly Reading[] {
  const folder = join(PROFILES, names[0] as string)
  if (isProfiled) mkdirSync(folder, { recursive: true })
  const flags = [
    '--expose-gc',
    `--max-old-space-size=${heapMib}`,
    ...(isProfiled ? profileFlags(folder) : []),
  ]
  const script = fileURLToPath(new URL('./measure-one.ts', import.meta.url))
  const startedAt = performance.now()
  const child = spawnSync(process.execPath, [...flags, script, names[0] as string], {
    cwd: ROOT,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const results =
    child.status === 0 ? (JSON.parse(child.stdout) as Reading[]) : names.map((name) => failed(name, child))
  const took = ((performance.now() - startedAt) / 1000).toFixed(0)
  for (const { name, value, note } of results) {
    console.log(
      `${name} ${typeof value === 'string' ? value : Number(value.toPrecision(4))} (${took} s): ${note}`,
    )
  }
  if (isProfiled) for (const line of topSelfTimes(folder)) console.log(line)
  return results
}

function failed(name: MeasureName, { signal, status }: SpawnSyncReturns<string>): Reading {
  return { name, value: 'failed', note: `its process ended with ${signal ?? `exit code ${status}`}` }
}
