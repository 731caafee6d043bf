/**
 * Removes one value from a scenario text: only the characters of that value, and of maps that hold nothing
 * else. Pure.
 */
import { isMap, isScalar, type Pair, type ParsedNode, type YAMLMap } from 'yaml'
import {
  endOfLine,
  lastCharacter,
  pairOf,
  readScenarioText,
  spliced,
  startOfLine,
  type Path,
  type ScenarioText,
} from './scenario-text.ts'

/** Null: there is no such value, or removing it would change something else. */
export function withoutValue(scenario: ScenarioText, path: Path): string | null {
  const at = partToRemove(scenario, path)
  const map: unknown = scenario.document.getIn(at.slice(0, -1), true)
  const key = at.at(-1)
  if (!isMap(map) || typeof key !== 'string') return null
  const pair = pairOf(map, key) as WrittenPair | undefined
  if (pair === undefined) return null
  const text = map.flow === true ? outOfFlow(scenario.text, map, pair) : outOfBlock(scenario.text, map, pair)
  return text !== null && removesOnly(scenario, at, text) ? text : null
}

type WrittenPair = Pair<ParsedNode, ParsedNode | null>

/** The value, or the map that would be left empty: `clock: { until: 6h }` as a whole. */
function partToRemove({ document }: ScenarioText, path: Path): Path {
  const parent = path.slice(0, -1)
  const map: unknown = document.getIn(parent, true)
  const isAlone =
    isMap(map) && map.items.length === 1 && parent.length > 0 && typeof parent.at(-1) === 'string'
  return isAlone ? partToRemove({ text: '', document }, parent) : path
}

function outOfFlow(text: string, map: YAMLMap, pair: WrittenPair): string {
  const index = map.items.indexOf(pair)
  const [before, after] = [map.items[index - 1], map.items[index + 1]] as readonly (WrittenPair | undefined)[]
  if (after !== undefined) return spliced(text, pair.key.range[0], after.key.range[0], '')
  const from = before === undefined ? pair.key.range[0] : endOf(before)
  return spliced(text, from, endOf(pair), '')
}

function outOfBlock(text: string, map: YAMLMap, pair: WrittenPair): string | null {
  const start = startOfLine(text, pair.key.range[0])
  if (text.slice(start, pair.key.range[0]).trim() === '') {
    return spliced(
      text,
      start,
      Math.min(text.length, endOfLine(text, lastCharacter(text, pair.value ?? pair.key)) + 1),
      '',
    )
  }
  // After the dash of an entry the next key takes its place.
  const after = map.items[map.items.indexOf(pair) + 1] as WrittenPair | undefined
  return after === undefined ? null : spliced(text, pair.key.range[0], after.key.range[0], '')
}

function endOf({ key, value }: WrittenPair): number {
  return value === null || (isScalar(value) && value.source === '') ? key.range[1] + 1 : value.range[1]
}

/** Verifies the result: the new text must parse to the old value without the removed part. */
function removesOnly({ document }: ScenarioText, path: Path, text: string): boolean {
  const after = readScenarioText(text)
  if (after === null) return false
  const expected = document.clone()
  expected.deleteIn(path)
  try {
    return JSON.stringify(after.document.toJS()) === JSON.stringify(expected.toJS())
  } catch {
    // An alias lost its anchor.
    return false
  }
}
