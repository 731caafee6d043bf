import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { nkeys } from '@nats-io/transport-node'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { natsSettings } from '../../services/settings/nats-settings.ts'
import { SettingsError } from '../../services/settings/settings.ts'
import { makeCertificates } from '../support/certificates.ts'
import type { Certificates } from '../support/certificates.ts'

const URL_ONLY = { CONTROLLER_NATS_URL: 'nats://a:4222' }
const folder = mkdtempSync(join(tmpdir(), 'headroom-settings-'))
const user = nkeys.createUser()
const seedFile = join(folder, 'user.nk')
let certificates: Certificates

beforeAll(() => {
  writeFileSync(seedFile, `${new TextDecoder().decode(user.getSeed())}\n`)
  certificates = makeCertificates(folder, 'DNS:a')
})
afterAll(() => rmSync(folder, { recursive: true }))

describe('the settings of the broker', () => {
  test('are null without a URL', () => {
    expect(natsSettings({})).toBeNull()
    expect(natsSettings({ CONTROLLER_NATS_URL: '', CONTROLLER_NATS_NKEY_FILE: '' })).toBeNull()
  })

  test.each([
    'CONTROLLER_NATS_USER',
    'CONTROLLER_NATS_TOKEN',
    'CONTROLLER_NATS_NKEY_FILE',
    'CONTROLLER_NATS_TLS_CA',
  ])('without a URL do not mean a simulated fleet if %s is set', (name) => {
    expect(() => natsSettings({ [name]: 'a-secret' })).toThrow(
      new SettingsError(
        'CONTROLLER_NATS_URL',
        '',
        `set when ${name} is set: one or more nats:// or tls:// URLs, separated by commas`,
      ),
    )
  })

  test('contain no credentials by default and leave TLS to the broker', () => {
    expect(natsSettings(URL_ONLY)).toEqual({
      urls: ['nats://a:4222'],
      auth: { kind: 'none' },
      tls: null,
      inboxPrefix: '_INBOX',
    })
  })

  test('take user and password from variables or from the URL, which is shown without them', () => {
    const expected = {
      urls: ['nats://a:4222'],
      auth: { kind: 'password', user: 'node-1', password: 'p@ss' },
      inboxPrefix: '_INBOX_node-1',
    }
    expect(
      natsSettings({ ...URL_ONLY, CONTROLLER_NATS_USER: 'node-1', CONTROLLER_NATS_PASSWORD: 'p@ss' }),
    ).toMatchObject(expected)
    expect(natsSettings({ CONTROLLER_NATS_URL: 'nats://node-1:p%40ss@a:4222' })).toMatchObject(expected)
  })

  test('support tokens, nkeys and a separate inbox prefix', () => {
    expect(natsSettings({ ...URL_ONLY, CONTROLLER_NATS_TOKEN: 't' })?.auth).toEqual({
      kind: 'token',
      token: 't',
    })
    expect(natsSettings({ CONTROLLER_NATS_URL: 'nats://t@a:4222' })?.auth).toEqual({
      kind: 'token',
      token: 't',
    })
    const byNkey = natsSettings({ ...URL_ONLY, CONTROLLER_NATS_NKEY_FILE: seedFile })
    expect(byNkey).toMatchObject({ auth: { kind: 'nkey' }, inboxPrefix: `_INBOX_${user.getPublicKey()}` })
    expect(natsSettings({ ...URL_ONLY, CONTROLLER_NATS_INBOX_PREFIX: '_INBOX.here' })?.inboxPrefix).toBe(
      '_INBOX.here',
    )
    const odd = { ...URL_ONLY, CONTROLLER_NATS_USER: 'a.>', CONTROLLER_NATS_PASSWORD: 'p' }
    expect(natsSettings(odd)?.inboxPrefix, 'a user name that is not valid in a subject').toBe('_INBOX')
  })

  test('request TLS if a URL or a file says so', () => {
    expect(natsSettings({ CONTROLLER_NATS_URL: 'tls://a,nats://b' })?.tls).toEqual({
      ca: null,
      cert: null,
      key: null,
    })
    const { ca, clientCert, clientKey } = certificates
    const files = {
      CONTROLLER_NATS_TLS_CA: ca,
      CONTROLLER_NATS_TLS_CERT: clientCert,
      CONTROLLER_NATS_TLS_KEY: clientKey,
    }
    const pem = expect.stringContaining('-----BEGIN') as string
    expect(natsSettings({ ...URL_ONLY, ...files })?.tls).toEqual({ ca: pem, cert: pem, key: pem })
  })

  test.each([
    [
      { CONTROLLER_NATS_URL: 'http://a' },
      'CONTROLLER_NATS_URL is "http://a"; it must be one or more nats://',
    ],
    [
      { CONTROLLER_NATS_URL: 'nats://u:secret@a,nats://v:secret@b' },
      'CONTROLLER_NATS_URL is "nats://…@a,nats://…@b"; it must be URLs with the same',
    ],
    [
      { CONTROLLER_NATS_PASSWORD: 'secret' },
      'CONTROLLER_NATS_PASSWORD is "…"; it must be one line of text; CONTROLLER_NATS_USER must be set',
    ],
    [{ CONTROLLER_NATS_PASSWORD: 'sec\nret', CONTROLLER_NATS_USER: 'u' }, 'CONTROLLER_NATS_PASSWORD is "…"'],
    [
      { CONTROLLER_NATS_USER: 'u' },
      'CONTROLLER_NATS_USER is "u"; it must be set together with CONTROLLER_NATS_PASSWORD',
    ],
    [
      { CONTROLLER_NATS_USER: 'a b', CONTROLLER_NATS_PASSWORD: 'secret' },
      'CONTROLLER_NATS_USER is "a b"; it must be a string of 1 to 200',
    ],
    [
      { CONTROLLER_NATS_TOKEN: 'secret', CONTROLLER_NATS_USER: 'u', CONTROLLER_NATS_PASSWORD: 'secret' },
      'CONTROLLER_NATS_TOKEN is "…"; it must be the only login',
    ],
    [
      { CONTROLLER_NATS_URL: 'nats://u:secret@a', CONTROLLER_NATS_TOKEN: 'secret' },
      'CONTROLLER_NATS_TOKEN is "…"; it must be the only login',
    ],
    [
      { CONTROLLER_NATS_NKEY_FILE: '/no/such/file' },
      'CONTROLLER_NATS_NKEY_FILE is "/no/such/file"; it must be a readable file with the seed',
    ],
    [
      { CONTROLLER_NATS_NKEY_FILE: import.meta.filename },
      'it must be a readable file with the seed of an nkey user',
    ],
    [
      { CONTROLLER_NATS_TLS_CA: seedFile },
      `CONTROLLER_NATS_TLS_CA is ${JSON.stringify(seedFile)}; it must be a readable PEM file`,
    ],
    [{ CONTROLLER_NATS_TLS_KEY: join(folder, 'client.key') }, 'CONTROLLER_NATS_TLS_CERT must be set'],
    [{ CONTROLLER_NATS_TLS_CERT: join(folder, 'client.pem') }, 'CONTROLLER_NATS_TLS_KEY must be set'],
    [
      { CONTROLLER_NATS_INBOX_PREFIX: 'a.>' },
      'CONTROLLER_NATS_INBOX_PREFIX is "a.>"; it must be _INBOX, followed by',
    ],
  ])('%j is refused in one line without secrets', (env, message) => {
    const error = errorOf(() => natsSettings({ ...URL_ONLY, ...env }))
    expect(error.message).toContain(message)
    expect(error.message).not.toMatch(/secret|\n/)
  })
})

function errorOf(read: () => unknown): SettingsError {
  try {
    read()
  } catch (error) {
    if (error instanceof SettingsError) return error
    throw error
  }
  throw new Error('nothing was refused')
}
