import { join } from 'node:path'
import { ESLint } from 'eslint'
import tseslint from 'typescript-eslint'
import { beforeAll, expect, test } from 'vitest'

/**
 * What the lint rules allow where. A later block of eslint.config.js silently replaces options of an earlier
 * one, hence these tables.
 */
const AMBIENT = [
  'export const now = Date.now()',
  'export const now = new Date()',
  'export const now = new Date',
  'export const now = Date()',
  'const Clock = Date; export const now = Clock.now()',
  "export const at = Date.parse('2026-01-01 00:00')",
  'export const hours = new Date(0).getHours()',
  'export const now = performance.now()',
  'setTimeout(() => {}, 1)',
  'setInterval(() => {}, 1)',
  'setImmediate(() => {})',
  'queueMicrotask(() => {})',
  "process.stdout.write('')",
  "console.log('')",
  "export const now = globalThis['Date'].now()",
  'export const id = crypto.randomUUID()',
  "import { readFileSync } from 'node:fs'; readFileSync('a')",
  "import { readFile } from 'fs/promises'; export const a = readFile",
  "import { setTimeout } from 'node:timers/promises'; export const a = setTimeout",
  "import { randomUUID } from 'node:crypto'; export const id = randomUUID()",
  "import * as crypto from 'node:crypto'; export const id = crypto.randomUUID()",
  "import process from 'node:process'; export const a = process",
  "export const fs = await import('node:fs')",
  'export const here = import.meta.url',
  "import seedrandom from 'seedrandom'; export const next = seedrandom()",
  "import seedrandom from 'seedrandom'; export const next = seedrandom.alea()",
]

const INEXACT = [
  'export const x = Math.random()',
  'export const cube = (x: number) => x ** 3',
  'export const cube = (x: number) => { let y = x; y **= 3; return y }',
  'export const x = Math.pow(2, 0.5)',
  'export const x = Math.exp(1)',
  'export const x = Math.log1p(1)',
  'export const x = Math.hypot(3, 4)',
  "export const x = Math['sin'](1)",
  "const name = 'sin'; export const x = Math[name](1)",
  'const { cos } = Math; export const x = cos(1)',
  'const m = Math; export const x = m.cos(1)',
  'export const x = [4, 3, 2].map(Math.cbrt)',
  'export const text = (1.5).toLocaleString()',
  "export const order = 'a'.localeCompare('b')",
  'export const sorted = [2, 1].sort()',
  'export const sorted = [2, 1].toSorted()',
]

const FINE = [
  'export const text = (at: number): string => new Date(at).toISOString()',
  'export const at = Date.UTC(2026, 0, 1)',
  'export type Row = { Date: string }; export const date = (row: Row): string => row.Date',
  "import { createHash } from 'node:crypto'; export const digest = createHash('sha256')",
  'export const x = Math.floor(Math.sqrt(2) * Math.max(1, 2))',
  'export const sorted = [2, 1].toSorted((a, b) => a - b)',
  "import seedrandom from 'seedrandom'; export const next = seedrandom.alea('42/arrivals')",
]

const PURE_FILES = [
  'protocol/planted.ts',
  ...['structures', 'model', 'policy', 'metrics', 'state', 'engine', 'query', 'ports', 'wire'].map(
    (folder) => `controller/${folder}/planted.ts`,
  ),
  'gpu-server/core/planted.ts',
  'simulator/planted.ts',
  'simulator/fleet/planted.ts',
]
const EDGE_FILES = [
  'simulator/world/live.ts',
  'simulator/scenario/load.ts',
  'simulator/trace/trace-file-reader.ts',
  'simulator/trace/import/spill-file.ts',
]
const OUTSIDE_FILES = [
  'controller/adapters/planted.ts',
  'controller/api/planted.ts',
  'gpu-server/planted.ts',
  'cli/planted.ts',
]

let eslint: ESLint

/** Without types: the planted files do not exist on disk, and no rule tested here needs types. */
beforeAll(() => {
  const untyped = {
    languageOptions: { parserOptions: { project: false } },
    rules: tseslint.configs.disableTypeChecked.rules ?? {},
  }
  eslint = new ESLint({
    cwd: join(import.meta.dirname, '..', '..'),
    overrideConfig: [{ files: ['**/*.ts'], ...untyped }],
  })
})

async function isRefused(file: string, code: string): Promise<boolean> {
  const [result] = await eslint.lintText(code, { filePath: file })
  if (result === undefined || result.fatalErrorCount > 0)
    throw new Error(`${file} could not be linted: ${JSON.stringify(result?.messages)}`)
  return result.errorCount > 0
}

async function letThrough(file: string, snippets: readonly string[]): Promise<string[]> {
  const verdicts = await Promise.all(
    snippets.map(async (code) => ((await isRefused(file, code)) ? [] : [code])),
  )
  return verdicts.flat()
}

test.each(PURE_FILES)('%s may use no ambient API and no inexact arithmetic', async (file) => {
  expect(await letThrough(file, [...AMBIENT, ...INEXACT, ...FINE])).toEqual(FINE)
})

test.each(EDGE_FILES)('%s may use ambient APIs, but only exact arithmetic', async (file) => {
  expect(await letThrough(file, [...AMBIENT, ...INEXACT, ...FINE])).toEqual([...AMBIENT, ...FINE])
})

test.each(OUTSIDE_FILES)(
  '%s may use ambient APIs, and inexact arithmetic except in sorting',
  async (file) => {
    const everywhere = INEXACT.filter((code) => !code.includes('ort()') && !code.includes('orted()'))
    expect(await letThrough(file, [...AMBIENT, ...INEXACT])).toEqual([...AMBIENT, ...everywhere])
  },
)
