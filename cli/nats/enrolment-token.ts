/**
 * Enrolment of one GPU server (docs/operating.md): what its token contains, and what its two short-lived
 * identities may do at the broker.
 */
import type { BrokerRights } from '../../protocol/broker-rights.ts'
import { DEFAULT_PREFIX } from '../../protocol/subjects.ts'

/** `joining`: the host with the token. `enrolling`: the command that waits for it. */
export interface EnrolmentIdentity {
  readonly kind: 'joining' | 'enrolling'
  readonly nodeId: string
}

export interface EnrolmentToken {
  /** Addresses of the broker, as the host reaches it. */
  readonly url: string
  readonly name: string
  readonly nodeId: string
  /** Seed of the `joining` identity. */
  readonly seed: string
}

const TOKEN_PREFIX = 'hre1.'

/** The host sends its public key there and gets the outcome as the answer. */
export function enrolmentSubject(nodeId: string): string {
  return `${DEFAULT_PREFIX}.enroll.${nodeId}`
}

export function enrolmentRights({ kind, nodeId }: EnrolmentIdentity, inbox: string): BrokerRights {
  const subject = enrolmentSubject(nodeId)
  return kind === 'joining'
    ? { publish: [subject], subscribe: [`${inbox}.>`], mayAnswer: false }
    : { publish: [], subscribe: [subject], mayAnswer: true }
}

export function tokenText(token: EnrolmentToken): string {
  return TOKEN_PREFIX + Buffer.from(JSON.stringify(token)).toString('base64url')
}

/** Returns null for any other text. */
export function parseToken(text: string): EnrolmentToken | null {
  if (!text.startsWith(TOKEN_PREFIX)) return null
  try {
    const token = JSON.parse(
      Buffer.from(text.slice(TOKEN_PREFIX.length), 'base64url').toString(),
    ) as EnrolmentToken
    const { url, name, nodeId, seed } = token
    return [url, name, nodeId, seed].every((each) => typeof each === 'string' && !/[\r\n]/.test(each))
      ? { url, name, nodeId, seed }
      : null
  } catch {
    return null
  }
}
