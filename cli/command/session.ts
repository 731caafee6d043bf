/** The client of an operator's command, and the objects that its arguments name. */
import { readFileSync } from 'node:fs'
import { createClient, type HeadroomClient, type Node } from '../../clients/typescript/client.ts'
import { CommandFailure, EXIT_NOT_FOUND, UsageError } from '../../services/exit-codes.ts'
import { nearestName } from '../../simulator/document/nearest-name.ts'
import type { OutputFormat } from '../output/formats.ts'
import { fileFailure } from './file-failure.ts'

export interface ServerOption {
  readonly server?: string
  readonly tokenFile?: string
}

export interface CommandOptions extends ServerOption {
  readonly output: OutputFormat
}

/** Interactive commands do not retry. */
const ATTEMPTS = 1

/** @throws UsageError when the address is invalid */
export function openClient(
  { server, tokenFile }: ServerOption,
  more: { readonly attempts?: number; readonly signal?: AbortSignal } = {},
): HeadroomClient {
  try {
    const token = tokenFile === undefined ? {} : { token: tokenIn(tokenFile) }
    return createClient({
      attempts: ATTEMPTS,
      ...more,
      ...token,
      ...(server === undefined ? {} : { url: server }),
    })
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    throw new UsageError(`${server === undefined ? '' : '--server: '}${error.message}`, { cause: error })
  }
}

function tokenIn(path: string): string {
  try {
    const token = readFileSync(path, 'utf8').trim()
    if (/^[\x21-\x7e]{1,512}$/.test(token)) return token
  } catch (error) {
    throw new UsageError(`--token-file ${path}: ${fileFailure(error) ?? String(error)}`, { cause: error })
  }
  throw new UsageError(`--token-file ${path}: the file does not contain a valid token`)
}

/** Finds a node by id, or by a unique name. */
export async function nodeNamed(client: HeadroomClient, text: string): Promise<Node> {
  const named: Node[] = []
  const names = new Set<string>()
  for await (const node of client.nodes.each({ limit: 1000 })) {
    names.add(node.name)
    if (node.node_id === text.toLowerCase()) return node
    if (node.name === text) named.push(node)
  }
  const [only, second] = named
  if (only === undefined) {
    const near = nearestName(text, [...names])
    const hint = near === null ? '' : ` Did you mean ${near}?`
    throw new CommandFailure(`Node ${JSON.stringify(text)} not found.${hint}`, EXIT_NOT_FOUND)
  }
  if (second !== undefined) {
    throw new UsageError(
      `${named.length} nodes are named ${JSON.stringify(text)}: use the node ID (headroom node list -o wide)`,
    )
  }
  return only
}

/** Parses `name=value` pairs; a value may contain equals signs. */
export function pairsOf(texts: readonly string[]): ReadonlyMap<string, string> {
  const pairs = new Map<string, string>()
  for (const text of texts) {
    const at = text.indexOf('=')
    if (at < 1) throw new UsageError(`${JSON.stringify(text)} must be NAME=VALUE`)
    const name = text.slice(0, at)
    if (pairs.has(name)) throw new UsageError(`${name} is specified twice`)
    pairs.set(name, text.slice(at + 1))
  }
  return pairs
}
