/**
 * The records of several batches as one: a statement writes a row at most once, so the last record of each id
 * remains. Keys without a change are absent (commit-function.ts).
 */
import type { AccessRows, BatchRows } from '../sql/rows.ts'
import { summed, type Value } from '../sql/row-sums.ts'

export type Json = Record<string, unknown>

export function mergedRecords(batches: readonly BatchRows[]): Json {
  const json: Json = {}
  const tasks = new Merged(1)
  const [nodes, groups, configs, keys] = [new Merged(0), new Merged(0), new Merged(0), new Merged(0)]
  const access = createAccess()
  for (const batch of batches) {
    tasks.put(batch.tasks)
    nodes.remove(batch.forgottenNodeIds)
    nodes.put(batch.nodes)
    groups.remove(batch.deletedGroupIds)
    groups.put(batch.groups)
    if (batch.config !== null) configs.put([batch.config])
    if (batch.submissionKeys !== null) {
      keys.put(batch.submissionKeys.added)
      json['keys_kept_from'] = batch.submissionKeys.keptFromSeq
    }
    if (batch.access !== null) access.add(batch.access)
    if (batch.endsRecovery) json['ends_recovery'] = true
  }
  tasks.into(json, 'tasks')
  nodes.into(json, 'nodes', 'forgotten_nodes')
  groups.into(json, 'groups', 'deleted_groups')
  configs.into(json, 'configs')
  keys.into(json, 'keys')
  access.into(json)
  return json
}

function createAccess() {
  const [tokens, secrets, audits] = [new Merged(0), new Merged(0), new Merged(0, false)]
  return {
    add(rows: AccessRows): void {
      secrets.remove(rows.deletedSecretIds)
      secrets.put(rows.secrets)
      tokens.remove(rows.revokedTokenIds)
      tokens.put(rows.tokens)
      audits.put(rows.audits)
    },
    into(json: Json): void {
      secrets.into(json, 'secrets', 'deleted_secrets')
      tokens.into(json, 'tokens', 'revoked_tokens')
      audits.into(json, 'audits')
    },
  }
}

type Row = readonly Value[]

class Merged {
  readonly #key: number
  readonly #hasSums: boolean
  readonly #rows = new Map<Value, Row>()
  readonly #removed = new Set<string>()

  /** @param key position of the id in a row */
  constructor(key: number, hasSums = true) {
    this.#key = key
    this.#hasSums = hasSums
  }

  remove(ids: readonly string[]): void {
    for (const id of ids) {
      this.#rows.delete(id)
      this.#removed.add(id)
    }
  }

  put(rows: readonly Row[]): void {
    for (const row of rows) this.#rows.set(row[this.#key] ?? null, row)
  }

  into(json: Json, key: string, removedKey = ''): void {
    if (this.#removed.size > 0) json[removedKey] = [...this.#removed]
    if (this.#rows.size === 0) return
    const rows = [...this.#rows.values()].map((row) => row.map(storable))
    json[key] = this.#hasSums ? rows.map(summed) : rows
  }
}

/**
 * PostgreSQL stores no text with a NUL or half of a surrogate pair. Only columns for queries can have them:
 * the record contains them as escapes.
 */
export function storable(value: Value): Value {
  if (typeof value !== 'string') return value
  return value.includes('\0') || !value.isWellFormed()
    ? value.replaceAll('\0', '\uFFFD').toWellFormed()
    : value
}
