/**
 * `node tools/structure/figures.ts`: how the product's sources hang together, in numbers that a redesign
 * should lower. The rules among them are kept by `make check-imports`; this prints the rest.
 */
import { readFileSync, globSync } from 'node:fs'
import { cruiseImports } from '../imports/cruise-imports.ts'
import { byCodeUnits } from '../../controller/structures/order.ts'
import { codeText } from './code-text.ts'
import { wholeClusterFunctions } from './whole-cluster.ts'

const PRODUCT = [
  'protocol',
  'controller',
  'gpu-server',
  'operator',
  'simulator',
  'ui',
  'cli',
  'services',
  'clients',
]
/** The file whose types describe the state of the cluster. */
const STATE = 'controller/state/facts.ts'
const EXPLAINING = /^controller\/(?:query\/(?:explain|preview)|engine\/apply\/decision-words)/
const DECIDING = /^controller\/policy\//
/** Writes cluster state down, or takes it up again. */
const CAPTURING =
  /^controller\/(?:state\/(?:snapshot|records|fields)|engine\/recovery\.ts|query\/cluster-snapshot)/
/** A task field that the controller only passes on: every file that names it. */
const PASS_THROUGH_FIELD = /\b(?:max_runtime_seconds|maxRuntimeMs|maxRuntimeSeconds)\b/

const files = globSync(
  PRODUCT.map((folder) => `${folder}/**/*.{ts,tsx}`),
  { exclude: ['**/*.d.ts'] },
).toSorted(byCodeUnits)
const code = new Map(files.map((file) => [file, codeText(file, readFileSync(file, 'utf8'))]))
const { circles, imports } = await cruiseImports(process.cwd())

const linesOf = (rule: RegExp, except?: RegExp): number =>
  files
    .filter((file) => rule.test(file) && except?.test(file) !== true)
    .reduce((sum, file) => sum + readFileSync(file, 'utf8').split('\n').length - 1, 0)
const codeLineCount = (text: string): number => text.split('\n').filter((line) => line.trim() !== '').length

const tooLong = files.flatMap((file) =>
  readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line.length > 110),
)
const whole = wholeClusterFunctions(files.filter((file) => file.endsWith('.ts')))

console.table({
  'circles of files, types included': circles.files.length,
  'files in the largest circle': Math.max(0, ...circles.files.map(({ length }) => length)),
  'folders in value circles': circles.folders.flat().length,
  'functions that take the whole cluster': whole.length,
  'files with such functions': new Set(whole.map(({ file }) => file)).size,
  [`files that a reader of ${STATE} must know`]: reachOf(STATE),
  'files that capture state': files.filter((file) => CAPTURING.test(file)).length,
  'their lines': linesOf(CAPTURING),
  'files that name a pass-through task field': [...code].filter(([, text]) => PASS_THROUGH_FIELD.test(text))
    .length,
  'lines that explain': linesOf(EXPLAINING),
  'lines that decide': linesOf(DECIDING, EXPLAINING),
  'files of the product': files.length,
  'code lines of the product': [...code.values()].reduce((sum, text) => sum + codeLineCount(text), 0),
  'lines over 110 characters': tooLong.length,
})
if (process.argv.includes('--list')) for (const { file, name } of whole) console.log(`${file}: ${name}`)

/** The number of files that importing this one, types included, leads to. */
function reachOf(file: string): number {
  const targets = Map.groupBy(imports, ({ from }) => from)
  const reached = new Set<string>()
  const open = [file]
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (reached.has(at)) continue
    reached.add(at)
    for (const { to } of targets.get(at) ?? []) open.push(to)
  }
  return reached.size
}
