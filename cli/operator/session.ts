/** The client that an operator's verb speaks through, and the things its arguments name. */
import { readFileSync } from 'node:fs'
import { createClient, type HeadroomClient, type Node } from '../client/client.ts'
import { CommandFailure, EXIT_NOT_FOUND, UsageError } from '../exit-codes.ts'
import type { OutputFormat } from './output.ts'

export interface ServerOption {
  readonly server?: string
  readonly tokenFile?: string
}

export interface CommandOptions extends ServerOption {
  readonly output: OutputFormat
}

/** A person waits, and asks again: nothing is tried a second time. */
const ATTEMPTS = 1

/** @throws UsageError when the address cannot be one. */
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
    throw new UsageError(`${server === undefined ? 'VENDOR_CONTROLLER_URL' : '--server'}: ${error.message}`, {
      cause: error,
    })
  }
}

function tokenIn(path: string): string {
  try {
    const token = readFileSync(path, 'utf8').trim()
    if (/^[\x21-\x7e]{1,512}$/.test(token)) return token
  } catch (error) {
    throw new UsageError(`--token-file: ${(error as Error).message}`, { cause: error })
  }
  throw new UsageError(`--token-file: ${path} holds no token`)
}

/** A node by its id, or by its name where only one has it. */
export async function nodeNamed(client: HeadroomClient, text: string): Promise<Node> {
  const named: Node[] = []
  for await (const node of client.nodes.each({ limit: 1000 })) {
    if (node.node_id === text.toLowerCase()) return node
    if (node.name === text) named.push(node)
  }
  const [only, second] = named
  if (only === undefined)
    throw new CommandFailure(`There is no node ${JSON.stringify(text)}.`, EXIT_NOT_FOUND)
  if (second !== undefined) {
    throw new UsageError(
      `${named.length} nodes are called ${JSON.stringify(text)}: give the id of one (headroom node list -o wide)`,
    )
  }
  return only
}

/** `name=value` pairs; a value may hold more equals signs. */
export function pairsOf(texts: readonly string[]): ReadonlyMap<string, string> {
  const pairs = new Map<string, string>()
  for (const text of texts) {
    const at = text.indexOf('=')
    if (at < 1) throw new UsageError(`${JSON.stringify(text)} must be NAME=VALUE`)
    const name = text.slice(0, at)
    if (pairs.has(name)) throw new UsageError(`${name} stands twice`)
    pairs.set(name, text.slice(at + 1))
  }
  return pairs
}
