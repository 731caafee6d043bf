/**
 * Makes certificates (RFC 5280) with keys on the curve P-256: an authority, and servers or clients that it
 * signs. Node reads certificates, but makes none.
 */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from 'node:crypto'
import type { Instant } from '../../protocol/units.ts'

/** PEM. */
export interface Issued {
  readonly cert: string
  readonly key: string
}

export interface Validity {
  readonly from: Instant
  readonly to: Instant
}

const ECDSA_SHA256 = [1, 2, 840, 10_045, 4, 3, 2]
const COMMON_NAME = [2, 5, 4, 3]
const SUBJECT_KEY = [2, 5, 29, 14]
const KEY_USAGE = [2, 5, 29, 15]
const ALTERNATIVE_NAMES = [2, 5, 29, 17]
const BASIC_CONSTRAINTS = [2, 5, 29, 19]
const AUTHORITY_KEY = [2, 5, 29, 35]
const EXTENDED_USAGE = [2, 5, 29, 37]
const PURPOSES = { server: [1, 3, 6, 1, 5, 5, 7, 3, 1], client: [1, 3, 6, 1, 5, 5, 7, 3, 2] }
/** Signs certificates and lists of revoked ones. */
const SIGNS = Buffer.from([1, 0b0000_0110])
/** An authority signs the next one, and that signs servers and clients. */
const LONGEST_PATH = Buffer.from([1])
const DIGITAL_SIGNATURE = Buffer.from([7, 0b1000_0000])

/**
 * @param key PEM; absent: a new one
 * @param issuer absent: itself
 */
export function makeAuthority(
  name: string,
  validity: Validity,
  { key, issuer }: { readonly key?: string; readonly issuer?: Issued } = {},
): Issued {
  const own = key === undefined ? newKey() : ownKey(createPrivateKey(key))
  const extensions = [
    extension(BASIC_CONSTRAINTS, sequence(boolean(true), integer(LONGEST_PATH)), true),
    extension(KEY_USAGE, tagged(0x03, SIGNS), true),
    extension(SUBJECT_KEY, tagged(0x04, own.id)),
    ...(issuer === undefined ? [] : [issuerKey(issuer)]),
  ]
  const signer =
    issuer === undefined
      ? { subject: name, key: own.privatePem }
      : { subject: issuerName(issuer), key: issuer.key }
  return signed({ subject: name, validity, own, extensions }, signer)
}

/** @param names DNS names; `purpose`: of the end of the connection that shows the certificate */
export function makeCertificate(
  authority: Issued,
  request: {
    readonly subject: string
    readonly names: readonly string[]
    readonly purpose: keyof typeof PURPOSES
    readonly validity: Validity
  },
): Issued {
  const own = newKey()
  const { names, purpose, subject, validity } = request
  const alternatives = names.map((name) => tagged(0x82, Buffer.from(name, 'ascii')))
  const extensions = [
    extension(BASIC_CONSTRAINTS, sequence(), true),
    extension(KEY_USAGE, tagged(0x03, DIGITAL_SIGNATURE), true),
    extension(EXTENDED_USAGE, sequence(oid(PURPOSES[purpose]))),
    extension(SUBJECT_KEY, tagged(0x04, own.id)),
    issuerKey(authority),
    ...(names.length === 0 ? [] : [extension(ALTERNATIVE_NAMES, sequence(...alternatives))]),
  ]
  return signed(
    { subject, validity, own, extensions },
    { subject: issuerName(authority), key: authority.key },
  )
}

function issuerKey({ cert }: Issued): Buffer {
  const spki = new X509Certificate(cert).publicKey.export({ type: 'spki', format: 'der' })
  return extension(AUTHORITY_KEY, sequence(tagged(0x80, keyId(spki))))
}

function issuerName({ cert }: Issued): string {
  return /^CN=(.*)$/m.exec(new X509Certificate(cert).subject)?.[1] ?? ''
}

interface OwnKey {
  readonly spki: Buffer
  readonly privatePem: string
  readonly id: Buffer
}

function newKey(): OwnKey {
  return ownKey(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey)
}

function ownKey(privateKey: KeyObject): OwnKey {
  const spki = createPublicKey(privateKey).export({ type: 'spki', format: 'der' })
  return { spki, privatePem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), id: keyId(spki) }
}

/** One of the methods of RFC 7093: the first 160 bits of SHA-256. */
function keyId(spki: Buffer): Buffer {
  return createHash('sha256').update(spki).digest().subarray(0, 20)
}

function signed(
  {
    subject,
    validity,
    own,
    extensions,
  }: {
    readonly subject: string
    readonly validity: Validity
    readonly own: OwnKey
    readonly extensions: readonly Buffer[]
  },
  issuer: { readonly subject: string; readonly key: string },
): Issued {
  const algorithm = sequence(oid(ECDSA_SHA256))
  const body = sequence(
    tagged(0xa0, integer(Buffer.from([2]))),
    integer(serialNumber()),
    algorithm,
    nameOf(issuer.subject),
    sequence(time(validity.from), time(validity.to)),
    nameOf(subject),
    own.spki,
    tagged(0xa3, sequence(...extensions)),
  )
  const signature = sign('sha256', body, createPrivateKey(issuer.key))
  const der = sequence(body, algorithm, bits(signature))
  const lines = der.toString('base64').replaceAll(/.{1,64}/g, (line) => `${line}\n`)
  return { cert: `-----BEGIN CERTIFICATE-----\n${lines}-----END CERTIFICATE-----\n`, key: own.privatePem }
}

/** Positive, and without a leading zero byte. */
function serialNumber(): Buffer {
  const bytes = randomBytes(16)
  bytes[0] = ((bytes[0] as number) & 0x3f) | 0x40
  return bytes
}

// ---- DER (X.690) ----

function tagged(tag: number, content: Buffer): Buffer {
  const { length } = content
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return tagged(0x30, Buffer.concat(parts))
}

function boolean(value: boolean): Buffer {
  return tagged(0x01, Buffer.from([value ? 0xff : 0]))
}

/** @param bytes of a number that is not negative: the first bit is 0 */
function integer(bytes: Buffer): Buffer {
  return tagged(0x02, bytes)
}

function bits(content: Buffer): Buffer {
  return tagged(0x03, Buffer.concat([Buffer.from([0]), content]))
}

function oid([first = 0, second = 0, ...rest]: readonly number[]): Buffer {
  return tagged(0x06, Buffer.from([40 * first + second, ...rest.flatMap(base128)]))
}

function base128(value: number): number[] {
  const bytes = [value & 0x7f]
  for (let left = value >> 7; left > 0; left >>= 7) bytes.unshift((left & 0x7f) | 0x80)
  return bytes
}

function nameOf(commonName: string): Buffer {
  return sequence(tagged(0x31, sequence(oid(COMMON_NAME), tagged(0x0c, Buffer.from(commonName, 'utf8')))))
}

/** Until 2049 the year has two digits. */
function time(instant: Instant): Buffer {
  const digits = new Date(instant).toISOString().replaceAll(/[-:T]|\.\d+/g, '')
  return digits < '2050' ? tagged(0x17, Buffer.from(digits.slice(2))) : tagged(0x18, Buffer.from(digits))
}

function extension(id: readonly number[], value: Buffer, isCritical = false): Buffer {
  return sequence(oid(id), ...(isCritical ? [boolean(true)] : []), tagged(0x04, value))
}
