/**
 * Task files of `headroom run -f` and `apply -f`: the fields of `POST /tasks` as YAML or JSON. Sizes and
 * times may have a unit.
 */
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { parse } from 'yaml'
import type { TaskRequest } from '../../clients/typescript/client.ts'
import { TaskPatchSchema, TaskRequestSchema } from '../../controller/api/tasks/schema.ts'
import { EXIT_OK, UsageError } from '../../services/exit-codes.ts'
import { nearestName } from '../../simulator/document/nearest-name.ts'
import { fileFailure } from '../command/file-failure.ts'
import { settingValue } from '../command/setting-values.ts'

/** A task file is small; the API accepts bodies of this size. */
const MAX_FILE_BYTES = 1024 * 1024
const FIELDS = Object.keys(TaskRequestSchema.properties)
const WITH_UNIT = /_(mib|seconds)$/

/** Fields that PATCH /tasks/{id} accepts. */
export const PATCHABLE: ReadonlySet<string> = new Set(Object.keys(TaskPatchSchema.properties))

/**
 * @param path `-` for stdin
 * @throws UsageError that names file and field; the controller checks ranges
 */
export function readTaskFile(path: string): TaskRequest {
  const value = parsed(path)
  if (value === null || typeof value !== 'object' || Array.isArray(value))
    throw new UsageError(
      `${path}: the file must contain the fields of one task, for example \`vram_mib: 16Gi\``,
    )
  const entries = Object.entries(value).map(([name, field]) => [name, fieldOf(path, name, field)] as const)
  return Object.fromEntries(entries) as TaskRequest
}

function parsed(path: string): unknown {
  try {
    const bytes = readFileSync(path === '-' ? 0 : path)
    if (bytes.byteLength > MAX_FILE_BYTES) throw new Error(`the file is larger than ${MAX_FILE_BYTES} bytes`)
    return parse(bytes.toString('utf8'), { maxAliasCount: 0 })
  } catch (error) {
    const [line] = (error as Error).message.split('\n')
    throw new UsageError(`${path}: ${fileFailure(error) ?? line}`, { cause: error })
  }
}

function fieldOf(path: string, name: string, value: unknown): unknown {
  if (!FIELDS.includes(name)) {
    const near = nearestName(name, FIELDS)
    throw new UsageError(
      `${path}: unknown field ${JSON.stringify(name)}. ` +
        (near === null ? `Use one of ${FIELDS.join(', ')}.` : `Did you mean ${near}?`),
    )
  }
  // A folder, relative to the task file.
  if (name === 'workdir' && typeof value === 'string')
    return resolve(path === '-' ? '.' : dirname(path), value)
  if (typeof value !== 'string' || !WITH_UNIT.test(name)) return value
  try {
    return settingValue(name, value)
  } catch (error) {
    throw error instanceof UsageError ? new UsageError(`${path}: ${error.message}`, { cause: error }) : error
  }
}

const WORKDIR = {
  type: ['string', 'null'],
  description: 'Folder on this machine to upload; relative to the task file',
  examples: ['.'],
}

/** `headroom task schema`: the JSON Schema of a task file. */
export function taskSchema(): number {
  process.stdout.write(`${JSON.stringify(taskFileSchema(), null, 2)}\n`)
  return EXIT_OK
}

/** The schema of the request, in which sizes and times may also be texts with a unit. */
export function taskFileSchema(): object {
  const { properties, ...rest } = JSON.parse(JSON.stringify(TaskRequestSchema)) as {
    readonly properties: Readonly<Record<string, { readonly description?: string }>>
  }
  const withUnits = Object.entries(properties).map(([name, field]) => {
    if (name === 'workdir') return [name, WORKDIR]
    if (!WITH_UNIT.test(name)) return [name, field]
    const { description, ...bare } = field
    const example = name.endsWith('_mib') ? '16Gi' : '2h'
    return [name, { description, anyOf: [bare, { type: 'string', examples: [example] }] }]
  })
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Headroom task file',
    ...rest,
    properties: Object.fromEntries(withUnits) as object,
  }
}
