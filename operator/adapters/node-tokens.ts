/**
 * On which node an agent runs, by the token of its ServiceAccount: the kubelet makes it for one pod, and the
 * API server vouches for the node of that pod. A certificate that all agents share cannot say that.
 */
import { createHash } from 'node:crypto'
import type { DurationMs, Instant } from '../../protocol/units.ts'
import { type KubeApi, TOKEN_REVIEWS } from '../ports/kube-api.ts'

/** Audience of the tokens with which agents report. They are not valid elsewhere. */
const AGENT_AUDIENCE = 'headroom'

export interface NodeTokensOptions {
  readonly api: Pick<KubeApi, 'create'>
  readonly now: () => Instant
  /** `system:serviceaccount:NAMESPACE:NAME`. */
  readonly account: string
}

interface Known {
  readonly node: string
  readonly at: Instant
  /** The token is not valid after this time. */
  readonly until: Instant
}

interface Review {
  readonly authenticated?: boolean
  readonly audiences?: readonly string[]
  readonly user?: { readonly username?: string; readonly extra?: Readonly<Record<string, readonly string[]>> }
}

const REVIEW_AFTER_MS: DurationMs = 60_000
const MAX_KNOWN = 10_000
const MAX_TOKEN = 8_192
const NODE_NAME = 'authentication.kubernetes.io/node-name'

export class NodeTokens {
  readonly #options: NodeTokensOptions
  /** Reviewed tokens, by their hash. */
  readonly #known = new Map<string, Known>()

  constructor(options: NodeTokensOptions) {
    this.#options = options
  }

  /** Null: it is not a token of an agent. Rejects when the API server is away and the token is not known. */
  async nodeOf(token: string): Promise<string | null> {
    if (token === '' || token.length > MAX_TOKEN) return null
    const key = createHash('sha256').update(token).digest('base64')
    const known = this.#known.get(key)
    const now = this.#options.now()
    if (known !== undefined && now - known.at < REVIEW_AFTER_MS) return known.node
    const node = await this.#reviewed(token).catch((error: unknown) => {
      // Swaps continue without the API server.
      if (known !== undefined && now < known.until) return known.node
      throw error
    })
    this.#known.delete(key)
    if (node === null) return null
    if (this.#known.size >= MAX_KNOWN) this.#known.clear()
    this.#known.set(key, { node, at: now, until: expiryOf(token) })
    return node
  }

  async #reviewed(token: string): Promise<string | null> {
    const { api, account } = this.#options
    const spec = { token, audiences: [AGENT_AUDIENCE] }
    const answer = await api.create(TOKEN_REVIEWS, { metadata: {}, spec })
    const { authenticated, audiences = [], user = {} } = (answer['status'] ?? {}) as Review
    if (authenticated !== true || !audiences.includes(AGENT_AUDIENCE) || user.username !== account)
      return null
    return user.extra?.[NODE_NAME]?.[0] ?? null
  }
}

/** Returns the expiry of a token that the API server has accepted. */
function expiryOf(token: string): Instant {
  try {
    const { exp } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as {
      readonly exp?: unknown
    }
    return typeof exp === 'number' ? exp * 1000 : 0
  } catch {
    return 0
  }
}
