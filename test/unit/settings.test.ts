import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { describe, expect, test } from 'vitest'
import { ENVIRONMENT } from '../../services/settings/env-table.ts'
import { readSettings, SettingsError } from '../../services/settings/settings.ts'
import { CONFIGURATION_DOCS, HOW_TO_MAKE, withTables } from '../../tools/reference/configuration-reference.ts'

const MIB = 1_048_576
const GIB = 1024 * MIB
const DEFAULTS = {
  httpHost: '127.0.0.1',
  httpPort: 30_080,
  allowedHosts: [],
  trustedProxies: [],
  requestsPerSecond: 5000,
  anonymousRequestsPerSecond: 100,
  ownerLimits: { maxPending: 100_000, maxPlacedGpus: null, p0: null },
  dataDir: './data',
  storePlace: null,
  among: {
    ...{ name: `${hostname()}:30080`, url: 'http://127.0.0.1:30080', leaseMs: 2_000, mayLead: true },
    tls: { ca: null, cert: null, key: null },
  },
  secretsKeyFile: null,
  isStoreExpected: false,
  eventsMaxCount: 1_000_000,
  eventsMaxDays: 365,
  eventsMaxMib: 1024,
  clientRequestsPerSecond: 5_000,
  oidc: null,
  recording: { fileMib: 16, files: 16 },
  uploads: { maxBytes: 10 * GIB, maxBytesPerOwner: 2 * GIB, minFreeBytes: GIB, minFreePercent: 5 },
  files: {
    maxBytes: 20 * GIB,
    maxBytesPerOwner: 4 * GIB,
    minFreeBytes: GIB,
    minFreePercent: 5,
    maxWorkdirBytes: GIB,
  },
  natsUrls: [],
  storeKind: 'simulated',
  simulatedFleet: null,
  defaultOvercommitPercent: 0,
  logLevel: 'info',
}

describe('the settings of a server', () => {
  test('treat a blank path as unset, and create no folder of that name', () => {
    expect(() => readSettings({ CONTROLLER_DATA_DIR: ' ' })).toThrow(
      new SettingsError('CONTROLLER_DATA_DIR', ' ', 'a path'),
    )
  })

  test.each([
    ['CONTROLLER_PEER_CERT_FILE', 'CONTROLLER_PEER_KEY_FILE'],
    ['CONTROLLER_PEER_KEY_FILE', 'CONTROLLER_PEER_CERT_FILE'],
  ])('require with %s also %s', (given, missing) => {
    expect(() => readSettings({ [given]: '/a.pem' })).toThrow(
      `${missing} is ""; it must be a path, because ${given} is set`,
    )
  })

  test('have their defaults if no variable is set or all are empty', () => {
    expect(readSettings({})).toEqual(DEFAULTS)
    expect(
      readSettings(Object.fromEntries(Object.values(ENVIRONMENT).map(({ name }) => [name, '']))),
    ).toEqual(DEFAULTS)
  })

  test('name a scenario for the simulated fleet if there is no broker', () => {
    const fleet = { CONTROLLER_SIMULATED_FLEET: 'fleet.scenario.yaml' }
    expect(readSettings(fleet).simulatedFleet).toBe('fleet.scenario.yaml')
    const both = errorOf(() => readSettings({ ...fleet, CONTROLLER_NATS_URL: 'nats://a:4222' }))
    expect(both.message).toBe(
      'CONTROLLER_SIMULATED_FLEET is "fleet.scenario.yaml"; it must be a readable scenario file, ' +
        'without CONTROLLER_NATS_URL',
    )
  })

  test('come from the environment', () => {
    const env = {
      CONTROLLER_HTTP_HOST: '::1',
      CONTROLLER_HTTP_PORT: '0',
      CONTROLLER_HTTP_ALLOWED_HOSTS: 'headroom.example.org, *.svc',
      CONTROLLER_HTTP_TRUSTED_PROXIES: '10.0.0.0/8,::1',
      CONTROLLER_HTTP_REQUESTS_PER_SECOND: '0',
      CONTROLLER_HTTP_ANONYMOUS_REQUESTS_PER_SECOND: '7',
      CONTROLLER_NATS_CLIENT_REQUESTS_PER_SECOND: '9',
      CONTROLLER_MAX_PENDING_TASKS_PER_OWNER: '50',
      CONTROLLER_MAX_PLACED_GPUS_PER_OWNER: '8',
      CONTROLLER_P0_ALLOWED: 'ann, role:operator',
      CONTROLLER_SECRETS_KEY_FILE: '/etc/headroom/secrets.key',
      CONTROLLER_DATA_DIR: '/var/lib/headroom',
      CONTROLLER_STORE_URL: 'postgres://h:p%40ss@db1:5433,[::1]/headroom?sslrootcert=/ca.pem',
      CONTROLLER_NAME: 'head-1',
      CONTROLLER_ADVERTISED_URL: 'https://head-1.example:8443',
      CONTROLLER_LEASE_MS: '500',
      CONTROLLER_MAY_LEAD: 'false',
      CONTROLLER_PEER_CA_FILE: '/etc/headroom/peers.pem',
      CONTROLLER_PEER_CERT_FILE: '/etc/headroom/head-1.pem',
      CONTROLLER_PEER_KEY_FILE: '/etc/headroom/head-1.key',
      CONTROLLER_EXPECT_STORE: 'true',
      CONTROLLER_UPLOADS_MAX_MIB: '100',
      CONTROLLER_UPLOADS_MAX_MIB_PER_OWNER: '10',
      CONTROLLER_UPLOADS_MIN_FREE_MIB: '0',
      CONTROLLER_FILES_MAX_MIB: '7',
      CONTROLLER_FILES_MAX_MIB_PER_OWNER: '6',
      CONTROLLER_WORKDIR_MAX_MIB: '5',
      CONTROLLER_UPLOADS_MIN_FREE_PERCENT: '2',
      CONTROLLER_STORE_KIND: 'trial',
      CONTROLLER_EVENTS_MAX_COUNT: '1000',
      CONTROLLER_EVENTS_MAX_DAYS: '7',
      CONTROLLER_EVENTS_MAX_MIB: '64',
      CONTROLLER_RECORDING_FILE_MIB: '2',
      CONTROLLER_RECORDING_FILES: '3',
      CONTROLLER_NATS_URL: 'nats://a:4222, tls://b.example:4222',
      CONTROLLER_DEFAULT_VRAM_OVERCOMMIT_PERCENT: '1000',
      LOG_LEVEL: 'silent',
    }
    expect(readSettings(env)).toEqual({
      httpHost: '::1',
      httpPort: 0,
      allowedHosts: ['headroom.example.org', '*.svc'],
      trustedProxies: ['10.0.0.0/8', '::1'],
      requestsPerSecond: 0,
      anonymousRequestsPerSecond: 7,
      clientRequestsPerSecond: 9,
      ownerLimits: { maxPending: 50, maxPlacedGpus: 8, p0: ['ann', 'role:operator'] },
      dataDir: '/var/lib/headroom',
      storePlace: {
        hosts: [
          { host: 'db1', port: 5433 },
          { host: '::1', port: 5432 },
        ],
        ...{ user: 'h', password: 'p@ss', database: 'headroom', poolSize: 4 },
        ...{ sslMode: 'verify-full', sslRootCert: '/ca.pem', sslCert: null, sslKey: null },
      },
      among: {
        ...{ name: 'head-1', url: 'https://head-1.example:8443', leaseMs: 500, mayLead: false },
        tls: {
          ...{ ca: '/etc/headroom/peers.pem', cert: '/etc/headroom/head-1.pem' },
          key: '/etc/headroom/head-1.key',
        },
      },
      secretsKeyFile: '/etc/headroom/secrets.key',
      isStoreExpected: true,
      uploads: { maxBytes: 100 * MIB, maxBytesPerOwner: 10 * MIB, minFreeBytes: 0, minFreePercent: 2 },
      files: {
        maxBytes: 7 * MIB,
        maxBytesPerOwner: 6 * MIB,
        minFreeBytes: 0,
        minFreePercent: 2,
        maxWorkdirBytes: 5 * MIB,
      },
      eventsMaxCount: 1000,
      eventsMaxDays: 7,
      eventsMaxMib: 64,
      oidc: null,
      recording: { fileMib: 2, files: 3 },
      natsUrls: ['nats://a:4222', 'tls://b.example:4222'],
      storeKind: 'trial',
      simulatedFleet: null,
      defaultOvercommitPercent: 1000,
      logLevel: 'silent',
    })
  })

  test.each([
    ['CONTROLLER_HTTP_HOST', 'http://localhost'],
    ['CONTROLLER_HTTP_HOST', '127.0.0.256'],
    ['CONTROLLER_HTTP_HOST', 'a b'],
    ['CONTROLLER_HTTP_HOST', '-x'],
    ['CONTROLLER_HTTP_PORT', '65536'],
    ['CONTROLLER_HTTP_PORT', '-1'],
    ['CONTROLLER_HTTP_PORT', '80.5'],
    ['CONTROLLER_HTTP_PORT', '0x50'],
    ['CONTROLLER_HTTP_PORT', ' 80'],
    ['CONTROLLER_HTTP_PORT', '080'],
    ['CONTROLLER_HTTP_ALLOWED_HOSTS', 'http://a'],
    ['CONTROLLER_HTTP_ALLOWED_HOSTS', 'a,,b'],
    ['CONTROLLER_HTTP_ALLOWED_HOSTS', 'a*'],
    ['CONTROLLER_HTTP_TRUSTED_PROXIES', 'proxy'],
    ['CONTROLLER_HTTP_TRUSTED_PROXIES', '10.0.0.0/33'],
    ['CONTROLLER_HTTP_TRUSTED_PROXIES', '10.0.0.0/8/8'],
    ['CONTROLLER_HTTP_REQUESTS_PER_SECOND', '-1'],
    ['CONTROLLER_HTTP_ANONYMOUS_REQUESTS_PER_SECOND', '1000001'],
    ['CONTROLLER_DATA_DIR', 'a\0b'],
    ['CONTROLLER_EXPECT_STORE', 'yes'],
    ['CONTROLLER_STORE_KIND', 'trial'],
    ['CONTROLLER_EVENTS_MAX_COUNT', '999'],
    ['CONTROLLER_EVENTS_MAX_DAYS', '0'],
    ['CONTROLLER_EVENTS_MAX_MIB', '1048577'],
    ['CONTROLLER_NATS_URL', 'http://a:4222'],
    ['CONTROLLER_NATS_URL', 'nats://a:4222,'],
    ['CONTROLLER_NATS_URL', 'nats://'],
    ['CONTROLLER_DEFAULT_VRAM_OVERCOMMIT_PERCENT', '1001'],
    ['CONTROLLER_DEFAULT_VRAM_OVERCOMMIT_PERCENT', '-1'],
    ['CONTROLLER_DEFAULT_VRAM_OVERCOMMIT_PERCENT', '1.5'],
    ['CONTROLLER_DEFAULT_VRAM_OVERCOMMIT_PERCENT', '20%'],
    ['CONTROLLER_DEFAULT_VRAM_OVERCOMMIT_PERCENT', 'true'],
    ['LOG_LEVEL', 'verbose'],
    ['LOG_LEVEL', 'INFO'],
  ])('refuse %s=%j in one line with variable, value and range', (name, value) => {
    const { range } = Object.values(ENVIRONMENT).find((variable) => variable.name === name) ?? {
      range: 'no such variable',
    }
    const error = errorOf(() => readSettings({ [name]: value }))
    expect(error).toMatchObject({
      variable: name,
      message: `${name} is ${JSON.stringify(value)}; it must be ${range}`,
    })
    expect(error.message).not.toContain('\n')
  })

  const OIDC = {
    CONTROLLER_OIDC_ISSUER: 'https://id.example.org/realm',
    CONTROLLER_OIDC_CLIENT_ID: 'headroom',
    CONTROLLER_OIDC_PUBLIC_URL: 'https://headroom.example.org',
    CONTROLLER_OIDC_ROLES: 'gpu-admins=admin, *=viewer',
  }

  test('contain a complete OIDC provider', () => {
    expect(readSettings({}).oidc).toBe(null)
    expect(readSettings(OIDC).oidc).toMatchObject({
      clientId: 'headroom',
      clientSecretFile: null,
      rules: {
        nameClaim: 'email',
        rolesClaim: 'groups',
        roles: [
          { value: 'gpu-admins', role: 'admin' },
          { value: '*', role: 'viewer' },
        ],
      },
      sessionHours: 8,
    })
  })

  test.each([...Object.keys(OIDC), 'CONTROLLER_OIDC_ISSUER'])(
    'refuse an incomplete provider: %s is missing',
    (name) => {
      expect(errorOf(() => readSettings({ ...OIDC, [name]: '' }))).toMatchObject({ variable: name })
      expect(errorOf(() => readSettings({ CONTROLLER_OIDC_CLIENT_SECRET_FILE: '/x' }))).toMatchObject({
        variable: 'CONTROLLER_OIDC_ISSUER',
      })
    },
  )

  test.each([
    ['CONTROLLER_OIDC_ISSUER', 'http://id.example.org'],
    ['CONTROLLER_OIDC_ISSUER', 'https://u:p@id.example.org'],
    ['CONTROLLER_OIDC_PUBLIC_URL', 'https://headroom.example.org/gpu'],
    ['CONTROLLER_OIDC_PUBLIC_URL', 'headroom.example.org'],
    ['CONTROLLER_OIDC_ROLES', 'gpu-admins'],
    ['CONTROLLER_OIDC_ROLES', 'gpu-admins=root'],
    ['CONTROLLER_OIDC_ROLES', '=viewer'],
    ['CONTROLLER_OIDC_SCOPE', 'email'],
    ['CONTROLLER_OIDC_SESSION_HOURS', '0'],
  ])('refuse %s=%j', (name, value) => {
    expect(errorOf(() => readSettings({ ...OIDC, [name]: value }))).toMatchObject({ variable: name })
  })

  test('hide the password of a refused broker URL', () => {
    const error = errorOf(() =>
      readSettings({ CONTROLLER_NATS_URL: 'nats://user:secret@a:4222,ftp://user:secret@b' }),
    )
    expect(error.message).toContain('nats://…@a:4222')
    expect(error.message).not.toContain('secret')
  })

  test.each([
    'mysql://h@db/headroom',
    'postgres://db/headroom',
    'postgres://h@db',
    'postgres://h@db:0/headroom',
    'postgres://h@db:5432,/headroom',
    'postgres://h@db/headroom?sslmode=prefer',
    'postgres://h@db/headroom?sslcert=/c.pem',
    'postgres://h@db/headroom?pool_size=0',
    'postgres://h@db/headroom?sslmod=disable',
  ])('refuse the store URL %s', (url) => {
    const { variable } = errorOf(() => readSettings({ CONTROLLER_STORE_URL: url })) as SettingsError
    expect(variable).toBe('CONTROLLER_STORE_URL')
  })

  test('hide the password of a refused store URL, whatever characters it has', () => {
    const error = errorOf(() =>
      readSettings({ CONTROLLER_STORE_URL: 'postgres://h:sec,r/e@t@db:x/headroom' }),
    )
    expect(error.message).toMatch(/^CONTROLLER_STORE_URL is "postgres:\/\/…@db:x\/headroom"; it must be /)
  })
})

describe('.env.example', () => {
  const file = readFileSync(new URL('../../.env.example', import.meta.url), 'utf8')
  const [text = '', ofClients = ''] = file.split(
    '# The following variables are read by the commands that talk to a controller',
  )
  const variablesIn = (part: string) =>
    [...part.matchAll(/^# (.+) \((.+)\)\n#([A-Z0-9_]+)=(.*)$/gm)].map(
      ([, meaning, range, name, byDefault]) => ({
        name,
        meaning,
        range,
        byDefault,
      }),
    )

  test('lists every variable of the commands with the meaning, range and default of docs/cli.md', () => {
    const page = readFileSync(new URL('../../docs/cli.md', import.meta.url), 'utf8')
    const documented = [...page.matchAll(/^\| `([A-Z_]+)` \| (?:`(.+?)`|none) \|/gm)].map(
      ([, name, byDefault = '']) => ({
        name,
        byDefault,
      }),
    )
    expect(documented).toHaveLength(12)
    const byName = (a: { readonly name?: string | undefined }, b: { readonly name?: string | undefined }) =>
      String(a.name) < String(b.name) ? -1 : 1
    expect(
      variablesIn(ofClients)
        .map(({ name, byDefault }) => ({ name, byDefault }))
        .sort(byName),
    ).toEqual(documented.sort(byName))
    expect([...ofClients.matchAll(/[A-Z0-9_]{4,}=/g)]).toHaveLength(12)
  })

  test('lists every variable of the servers with meaning, range and default, and no others', () => {
    const listed = variablesIn(text)
    const table = Object.values(ENVIRONMENT).map(({ name, meaning, range, byDefault }) => ({
      name,
      meaning,
      range,
      byDefault: byDefault ?? '',
    }))
    expect(listed).toEqual(table)
    expect([...text.matchAll(/[A-Z0-9_]{4,}=/g)]).toHaveLength(table.length)
  })
})

test('docs/configuration.md is up to date with every variable and setting', () => {
  const page = readFileSync(CONFIGURATION_DOCS, 'utf8')
  expect(page === withTables(page), `it is out of date: run \`${HOW_TO_MAKE}\``).toBe(true)
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
