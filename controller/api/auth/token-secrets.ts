/**
 * The format of a bearer token, and its stored part. `headroom_<id>_<secret>`: the id identifies the record,
 * the secret authenticates. A secret has 256 random bits, so that one round of SHA-256 is enough: unlike
 * passwords, secrets cannot be tried exhaustively.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'

/** Minimum length of a secret from a file. */
export const SECRET_MIN_CHARACTERS = 32
export const SECRET_MAX_CHARACTERS = 512

const ID_ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567'
const ID_CHARACTERS = 12
const SECRET_BYTES = 32
const PATTERN = /^headroom_([a-z2-7]{12})_[A-Za-z0-9_-]{43}$/
const UNKNOWN = Buffer.alloc(32)

export interface NewSecret {
  readonly id: string
  /** The secret, shown once. */
  readonly secret: string
  /** The hash, which is stored. */
  readonly hash: string
}

export function newSecret(): NewSecret {
  const id = [...randomBytes(ID_CHARACTERS)]
    .map((byte) => ID_ALPHABET.charAt(byte % ID_ALPHABET.length))
    .join('')
  const secret = `headroom_${id}_${randomBytes(SECRET_BYTES).toString('base64url')}`
  return { id, secret, hash: hashOf(secret) }
}

/** 64 hexadecimal digits. */
export function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}

/** Returns the id in a secret of this format, or null for any other text. */
export function idIn(secret: string): string | null {
  return PATTERN.exec(secret)?.[1] ?? null
}

/** Takes constant time wherever the two differ, and also without a hash to compare with. */
export function isSecretOf(secret: string, hash: string | null): boolean {
  const expected = hash === null ? UNKNOWN : Buffer.from(hash, 'hex')
  const isSame = timingSafeEqual(createHash('sha256').update(secret).digest(), expected)
  return isSame && hash !== null
}
