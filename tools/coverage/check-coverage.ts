/**
 * Reads the report of the last measured test run (`make test`) and asks three things.
 * 1. The canaries: lines known to run are covered, lines known not to run are not.
 * 2. Every source file is in the report, so that a file which no test loads counts as 0 %.
 * 3. At least 90 % of the lines of code in each measured folder are covered.
 */
import { globSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { codeLines } from './code-lines.ts'

type FileReport = {
  readonly statementMap: Record<string, { start: { line: number } }>
  readonly s: Record<string, number>
}
type SourceFile = { readonly path: string; readonly lines: readonly number[] }
type FileCount = { readonly path: string; readonly lineCount: number; readonly missedCount: number }

const REPORT = 'coverage/coverage-final.json'
const CANARY_FOLDER = 'test/support/coverage-canary'
const CANARIES = ['in-the-test', 'in-a-worker-thread', 'in-a-child-process']
const FOLDERS = [
  'controller',
  'gpu-server/core',
  'operator/admission',
  'operator/contract',
  'operator/memory-api',
  'operator/plan',
  'operator/reflector',
  'simulator',
]
const WANTED_PERCENT = 90
const WORST_FILES_SHOWN = 10

const report = readReport()
const complaints = [...CANARIES.flatMap(wrongCanaryLines), ...FOLDERS.flatMap(checkFolder)]

for (const complaint of complaints) console.error(complaint)
if (complaints.length > 0) process.exit(1)

function readReport(): ReadonlyMap<string, FileReport> {
  const byPath = JSON.parse(readFileSync(REPORT, 'utf8')) as Record<string, FileReport>
  return new Map(Object.entries(byPath).map(([path, file]) => [relative(process.cwd(), path), file]))
}

/** How often each line of a file ran; a line the report says nothing about is absent. */
function hitsByLine(path: string): ReadonlyMap<number, number> {
  const file = report.get(path)
  return new Map(
    file && Object.entries(file.statementMap).map(([id, { start }]) => [start.line, file.s[id] ?? 0]),
  )
}

// ---- 1. canaries ----

function wrongCanaryLines(name: string): string[] {
  const path = join(CANARY_FOLDER, `${name}.ts`)
  const hits = hitsByLine(path)
  const marks = readFileSync(path, 'utf8').split('\n').map(readMark)
  if (!marks.includes('runs') || !marks.includes('never runs'))
    return [`${path}: a canary needs lines of both kinds`]
  return marks.flatMap((mark, index) => {
    const reported = readHits(hits.get(index + 1))
    if (mark === null || mark === reported) return []
    return [
      `${path}:${index + 1} ${mark}, the coverage report says "${reported}": believe none of its numbers`,
    ]
  })
}

function readMark(line: string): 'runs' | 'never runs' | null {
  if (line.endsWith('// runs')) return 'runs'
  return line.endsWith('// never runs') ? 'never runs' : null
}

function readHits(hits: number | undefined): 'runs' | 'never runs' | 'nothing' {
  if (hits === undefined) return 'nothing'
  return hits > 0 ? 'runs' : 'never runs'
}

// ---- 2. every file, 3. enough of its lines ----

function checkFolder(folder: string): string[] {
  const files = sourceFiles(folder)
  if (files.length === 0) return [`${folder}: there is no code to measure`]
  const unreported = files.filter((file) => !report.has(file.path))
  return [
    ...unreported.map((file) => `${file.path} is not in the coverage report`),
    ...checkThreshold(folder, files.map(countLines)),
  ]
}

function sourceFiles(folder: string): SourceFile[] {
  const paths = globSync(`${folder}/**/*.ts`, { exclude: ['**/*.d.ts'] })
  const files = paths.map((path) => ({ path, lines: codeLines(readFileSync(path, 'utf8')) }))
  return files.filter((file) => file.lines.length > 0)
}

function countLines({ path, lines }: SourceFile): FileCount {
  const hits = hitsByLine(path)
  return {
    path,
    lineCount: lines.length,
    missedCount: lines.filter((line) => (hits.get(line) ?? 0) === 0).length,
  }
}

function checkThreshold(folder: string, counts: readonly FileCount[]): string[] {
  const lineCount = counts.reduce((sum, count) => sum + count.lineCount, 0)
  const missedCount = counts.reduce((sum, count) => sum + count.missedCount, 0)
  const percent = (100 * (lineCount - missedCount)) / lineCount
  console.log(
    `${folder.padEnd(16)} ${percent.toFixed(1).padStart(5)} % of ${lineCount} lines of code covered`,
  )
  if (percent >= WANTED_PERCENT) return []

  const worst = counts.toSorted((a, b) => b.missedCount - a.missedCount).slice(0, WORST_FILES_SHOWN)
  const shown = worst.map((count) => `  ${count.missedCount} of ${count.lineCount} lines in ${count.path}`)
  return [`${folder}: less than ${WANTED_PERCENT} % are covered. Not covered:`, ...shown]
}
