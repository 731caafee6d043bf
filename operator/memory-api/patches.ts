/** JSON merge patches (RFC 7386) and JSON patches (RFC 6902; add, remove, replace and test). */
import { type JsonPatchStep, KubeError } from '../ports/kube-api.ts'

type Json = Readonly<Record<string, unknown>>

export function mergePatched(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch
  const result: Record<string, unknown> = isRecord(target) ? { ...target } : {}
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name]
    else result[name] = mergePatched(result[name], value)
  }
  return result
}

/** Throws KubeError 422 for a step that does not apply. */
export function jsonPatched(target: unknown, steps: readonly JsonPatchStep[]): unknown {
  return steps.reduce((value, step) => applied(value, partsOf(step.path), step), structuredClone(target))
}

function partsOf(path: string): readonly string[] {
  return path
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
}

function applied(value: unknown, parts: readonly string[], step: JsonPatchStep): unknown {
  const [name, ...rest] = parts
  if (name === undefined) return step.op === 'remove' ? undefined : step.value
  if (Array.isArray(value)) {
    const index = name === '-' ? value.length : Number(name)
    if (!Number.isInteger(index) || index < 0 || index > value.length) return refuse(step)
    if (rest.length > 0) return value.map((item, i) => (i === index ? applied(item, rest, step) : item))
    return changedList(value, index, step)
  }
  if (!isRecord(value)) return refuse(step)
  if (rest.length > 0) return { ...value, [name]: applied(value[name], rest, step) }
  if (step.op !== 'add' && !Object.hasOwn(value, name)) return refuse(step)
  if (step.op === 'test') return isEqual(value[name], step.value) ? value : refuse(step)
  if (step.op !== 'remove') return { ...value, [name]: step.value }
  const { [name]: _removed, ...left } = value
  return left
}

function changedList(list: readonly unknown[], index: number, step: JsonPatchStep): readonly unknown[] {
  if (step.op === 'add') return list.toSpliced(index, 0, step.value)
  if (index === list.length) return refuse(step)
  if (step.op === 'remove') return list.toSpliced(index, 1)
  if (step.op === 'replace') return list.with(index, step.value)
  return isEqual(list[index], step.value) ? list : refuse(step)
}

function refuse({ op, path }: JsonPatchStep): never {
  throw new KubeError(422, 'Invalid', `the server rejected our request: ${op} of ${path} does not apply`)
}

/** Values of JSON from one side of the wire: names in the same order. */
export function isEqual(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}

export function isRecord(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
