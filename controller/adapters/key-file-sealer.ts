/**
 * AES-256-GCM with a key from a file, which is in no backup. A sealed text is the Base64 of: version, key id,
 * nonce, ciphertext, tag.
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, openSync, readFileSync, statSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Sealer } from '../ports/sealer.ts'

const VERSION = 1
const KEY_BYTES = 32
const KEY_ID_BYTES = 8
const NONCE_BYTES = 12
const TAG_BYTES = 16
const HEAD_BYTES = 1 + KEY_ID_BYTES
const ALGORITHM = 'aes-256-gcm'
/** Readable by others than its owner. */
const OTHERS = 0o077

/** The key file cannot be used; the message says why and what to do. */
export class KeyFileFault extends Error {}

/**
 * Opens the key file, which is created with the first value that is sealed.
 * @throws KeyFileFault if others may read it, or it holds no key
 */
export function openKeyFile(path: string): Sealer {
  const found = readKey(path)
  let sealer = found === null ? null : sealerOf(found)
  return {
    seal: (text, context) => (sealer ??= sealerOf(createKey(path))).seal(text, context),
    open: (sealed, context) => sealer?.open(sealed, context) ?? null,
  }
}

/**
 * Returns the id of the key in the file, which is created if it is missing.
 * @throws KeyFileFault as openKeyFile
 */
export function keyIdIn(path: string): string {
  return idOf(readKey(path) ?? createKey(path)).toString('hex')
}

/** Returns null if there is no such file. */
function readKey(path: string): Buffer | null {
  const about = statSync(path, { throwIfNoEntry: false })
  if (about === undefined) return null
  if ((about.mode & OTHERS) !== 0)
    throw new KeyFileFault(`${path}: other users can read the key of the secrets; run: chmod 600 ${path}`)
  const key = Buffer.from(readFileSync(path, 'utf8').trim(), 'base64')
  if (key.length !== KEY_BYTES)
    throw new KeyFileFault(
      `${path}: does not contain a key of ${KEY_BYTES} bytes in Base64; restore the file`,
    )
  return key
}

/** The key is durable before the first value is sealed with it. */
function createKey(path: string): Buffer {
  const key = randomBytes(KEY_BYTES)
  const file = openSync(path, 'wx', 0o600)
  writeSync(file, `${key.toString('base64')}\n`)
  fsyncSync(file)
  closeSync(file)
  const folder = openSync(dirname(path), 'r')
  fsyncSync(folder)
  closeSync(folder)
  return key
}

function idOf(key: Buffer): Buffer {
  return createHash('sha256').update(key).digest().subarray(0, KEY_ID_BYTES)
}

export function sealerOf(key: Buffer): Sealer {
  const head = Buffer.concat([Buffer.from([VERSION]), idOf(key)])
  return {
    seal: (text, context) => {
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv(ALGORITHM, key, nonce).setAAD(Buffer.from(context))
      const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return Buffer.concat([head, nonce, body, cipher.getAuthTag()]).toString('base64')
    },
    open: (sealed, context) => {
      const bytes = Buffer.from(sealed, 'base64')
      if (bytes.length < HEAD_BYTES + NONCE_BYTES + TAG_BYTES) return null
      if (!bytes.subarray(0, HEAD_BYTES).equals(head)) return null
      const nonce = bytes.subarray(HEAD_BYTES, HEAD_BYTES + NONCE_BYTES)
      const body = bytes.subarray(HEAD_BYTES + NONCE_BYTES, -TAG_BYTES)
      const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES })
        .setAAD(Buffer.from(context))
        .setAuthTag(bytes.subarray(-TAG_BYTES))
      try {
        return Buffer.concat([decipher.update(body), decipher.final()]).toString('utf8')
      } catch {
        return null
      }
    },
  }
}
