import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { ENVIRONMENT } from '../../services/settings/env-table.ts'
import { readSettings } from '../../services/settings/settings.ts'
import { whyNotUnderstood } from '../support/command-lines.ts'
import { stagesOf } from '../support/dockerfile.ts'

const ROOT = join(import.meta.dirname, '../..')
const NAMED = new Set<string>(Object.values(ENVIRONMENT).map(({ name }) => name))
const SECRETS = new Set<string>(
  Object.values(ENVIRONMENT).flatMap((each) => ('isSecret' in each ? [each.name] : [])),
)
/** Values that the operator of the cluster may set and that no process reads. */
const OF_THE_FILE = ['HEADROOM_NODES', 'GATEWAY_HOST_NAME']
const KEYS = '/etc/headroom/key'

interface Service {
  readonly image: string
  readonly build?: { readonly context: string; readonly target: string }
  readonly command?: readonly string[]
  readonly profiles?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  readonly ports?: readonly string[]
  readonly volumes?: readonly string[]
  readonly user: string
  readonly read_only: boolean
  readonly tmpfs: readonly string[]
  readonly cap_drop: readonly string[]
  readonly cap_add?: readonly string[]
  readonly group_add?: readonly string[]
  readonly pid?: string
  readonly security_opt: readonly string[]
  readonly healthcheck?: { readonly test?: readonly string[]; readonly disable?: boolean }
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>
  readonly runtime?: string
}

const text = readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8')
const { services, volumes } = parse(text, { merge: true }) as {
  readonly services: Readonly<Record<string, Service>>
  readonly volumes: Readonly<Record<string, unknown>>
}
const all = Object.entries(services)
const ours = all.filter(([, { build }]) => build !== undefined)

describe('docker-compose.yml', () => {
  it('starts the broker and the controller, and the servers by profile', () => {
    const byProfile = Map.groupBy(all, ([, { profiles }]) => profiles?.join() ?? 'always')
    expect([...byProfile.keys()].toSorted(byText)).toEqual(['always', 'gateway', 'gpu', 'sim'])
    expect(byProfile.get('always')?.map(([name]) => name)).toEqual([
      'broker-config',
      'admin-token',
      'nats',
      'controller',
    ])
    for (const [, { runtime }] of byProfile.get('gpu') ?? []) expect(runtime).toBe('nvidia')
  })

  it('publishes the broker as 30422, the gateway as 30081, and the API for this host alone', () => {
    expect(services['nats']?.ports).toEqual(['30422:4222'])
    expect(services['controller']?.ports).toEqual(['127.0.0.1:30080:30080'])
    expect(all.filter(([, { ports }]) => ports !== undefined)).toHaveLength(3)
    expect(services['gateway']?.ports).toEqual(['30081:30081'])
  })

  it.each(all)(
    '%s has a read-only root and an ordinary user; the GPU server is root with named capabilities',
    (name, service) => {
      if (name === 'gpu-server') {
        expect([service.user, service.group_add]).toEqual(['0:0', ['1000']])
        expect(service.cap_add).toEqual(['SETUID', 'SETGID', 'CHOWN', 'KILL', 'SYS_PTRACE', 'SYS_ADMIN'])
      } else {
        expect(service.user).toMatch(/^[1-9]\d*:[1-9]\d*$/)
        expect([service.group_add, service.cap_add, service.pid]).toEqual([undefined, undefined, undefined])
      }
      expect(service.read_only).toBe(true)
      expect(service.tmpfs).toContain('/tmp')
      expect(service.cap_drop).toEqual(['ALL'])
      expect(service.security_opt).toEqual(['no-new-privileges:true'])
      expect(service).not.toHaveProperty('privileged')
    },
  )

  it.each(ours)(
    '%s is built from a stage of the Dockerfile and runs an existing command',
    (_, { build, command, image }) => {
      const stages = stagesOf(readFileSync(join(ROOT, 'Dockerfile'), 'utf8'))
      expect(build?.context).toBe('.')
      expect(stages.has(build?.target ?? '')).toBe(true)
      expect(image).toBe(`headroom-${build?.target}`)
      if (command !== undefined) expect(whyNotUnderstood(command)).toBeNull()
      for (const path of command?.filter((word) => word.startsWith('scenarios/')) ?? [])
        expect(existsSync(join(ROOT, path))).toBe(true)
    },
  )

  it.each(all)('%s has a health check or disables it explicitly', (_, { healthcheck }) => {
    if (healthcheck?.disable === true) return
    expect(healthcheck?.test?.[0]).toBe('CMD')
  })

  it('checks the health of the broker and the controller by existing paths', () => {
    expect(services['nats']?.healthcheck?.test?.at(-1)).toBe('http://127.0.0.1:8222/healthz')
    expect(services['broker-config']?.command).toContain('--monitor=127.0.0.1:8222')
    expect(services['controller']?.healthcheck?.test?.at(-1)).toContain("'http://127.0.0.1:30080/livez'")
  })

  it('creates a fleet key in a trial store only, and has no element that Compose 1.29 refuses', () => {
    const config = services['broker-config']
    expect(config?.command?.filter((word) => /fleets/.test(word))).toEqual(['--trial-fleets=sim'])
    expect(config?.environment).toEqual({
      CONTROLLER_STORE_KIND: services['controller']?.environment?.['CONTROLLER_STORE_KIND'],
    })
    const elements = Object.keys(parse(text, { merge: true }) as object).filter(
      (name) => !name.startsWith('x-'),
    )
    expect(elements.toSorted(byText)).toEqual(['services', 'volumes'])
  })

  it('sets only variables that are read, and contains no secret', () => {
    const set = all.flatMap(([, { environment = {} }]) => Object.keys(environment))
    expect(set.filter((name) => !NAMED.has(name))).toEqual([])
    expect(set.filter((name) => SECRETS.has(name))).toEqual([])
    const taken = [...text.matchAll(/\$\{(\w+)/g)].map((match) => match[1] as string)
    expect(taken.filter((name) => !NAMED.has(name) && !OF_THE_FILE.includes(name))).toEqual([])
  })

  it('sets only values in range', () => {
    for (const [, { environment = {} }] of all) {
      for (const [name, value] of Object.entries(environment)) {
        const variable = Object.values(ENVIRONMENT).find((each) => each.name === name)
        const byDefault = value.replace(/\$\{\w+:-([^}]*)\}/, '$1')
        if (byDefault !== '') expect([name, variable?.read(byDefault)]).not.toEqual([name, undefined])
      }
    }
  })

  it('stores persistent data in named volumes, and gives each container only its own key', () => {
    const mounted = all.flatMap(([, each]) => each.volumes ?? []).map((volume) => volume.split(':'))
    expect(new Set(mounted.map(([name]) => name))).toEqual(new Set(Object.keys(volumes)))
    const writers = all.filter(([, each]) => each.volumes?.includes('broker:/etc/headroom/broker'))
    expect(writers.map(([name]) => name)).toEqual(['broker-config'])
    const admins = all.filter(([, each]) => each.volumes?.includes('admin:/etc/headroom/admin'))
    expect(admins.map(([name]) => name)).toEqual(['admin-token'])
    expect(services['admin-token']?.command).toContain(
      `--out=${services['controller']?.environment?.['CONTROLLER_ADMIN_TOKEN_FILE']}`,
    )
    expect(services['controller']?.depends_on?.['admin-token']?.condition).toBe(
      'service_completed_successfully',
    )
    expect(services['gateway']?.volumes).toEqual(['gateway-token:/etc/headroom/gateway:ro'])
    const config = services['broker-config']
    const copies = config?.command?.find((word) => word.startsWith('--key-copies=')) ?? ''
    for (const [name, { environment = {}, depends_on, volumes: mounts = [] }] of all) {
      const key = environment['CONTROLLER_NATS_NKEY_FILE']
      const keyVolumes = mounts.filter((volume) => /^keys?\b/.test(volume))
      if (name !== 'broker-config')
        expect([name, keyVolumes]).toEqual([name, key === undefined ? [] : [`key-${name}:${KEYS}:ro`]])
      if (key === undefined) continue
      const [, party = ''] = /^\/etc\/headroom\/key\/(.*)\.nk$/.exec(key) ?? []
      expect(copies).toContain(`${party}=${KEYS}s/${name}`)
      expect(config?.volumes).toContain(`key-${name}:${KEYS}s/${name}`)
      expect(depends_on?.['broker-config']?.condition).toBe('service_completed_successfully')
    }
  })
})

describe('deploy/compose/two-controllers.yml', () => {
  const path = join(ROOT, 'deploy/compose/two-controllers.yml')
  const added = parse(readFileSync(path, 'utf8'), { merge: true }) as {
    readonly services: Readonly<Record<string, Partial<Service>>>
    readonly volumes: Readonly<Record<string, unknown>>
  }
  const merged = (name: string) => {
    const [before, more] = [services[name], added.services[name]]
    return {
      environment: { ...before?.environment, ...more?.environment },
      volumes: [...(before?.volumes ?? []), ...(more?.volumes ?? [])],
    }
  }
  const controllers = ['controller', 'controller-2'].map(merged)

  it('gives both controllers one store and one key of secrets, and each a name, an address and data', () => {
    const settings = controllers.map(({ environment }) => {
      const taken = Object.entries(environment).map(([name, value]): [string, string] => [
        name,
        value.replace(/\$\{\w+:-([^}]*)\}/, '$1').replace(/\$\{\w+:\?[^}]*\}/, 'p4ss'),
      ])
      return readSettings(Object.fromEntries(taken))
    })
    const [first, second] = settings
    expect(first?.storePlace).toEqual(second?.storePlace)
    expect(first?.storePlace).toMatchObject({ password: 'p4ss', sslMode: 'disable', user: 'headroom' })
    expect(first?.secretsKeyFile).toBe(second?.secretsKeyFile)
    expect(settings.map(({ among }) => [among.name, among.url])).toEqual([
      ['head-1', 'http://controller:30080'],
      ['head-2', 'http://controller-2:30080'],
    ])
    for (const { allowedHosts } of settings) expect(allowedHosts).toEqual(['controller', 'controller-2'])
    const data = controllers.map((each) =>
      each.volumes.find((volume) => volume.endsWith(':/var/lib/headroom')),
    )
    expect(new Set(data).size).toBe(2)
  })

  it('lets a controller trust only the other ones to say where a request comes from', () => {
    const addresses = ['controller', 'controller-2'].map((name) => {
      const { networks } = added.services[name] as { networks: { default: { ipv4_address: string } } }
      return networks.default.ipv4_address
    })
    for (const { environment } of controllers)
      expect(environment['CONTROLLER_HTTP_TRUSTED_PROXIES']?.split(',')).toEqual(addresses)
  })

  it('makes a key for the broker for each controller, and the key of the secrets once', () => {
    const { command = [], volumes: mounts = [] } = added.services['broker-config'] ?? {}
    expect(whyNotUnderstood(command)).toBeNull()
    for (const [i, { environment, volumes: own }] of controllers.entries()) {
      const folder = i === 0 ? 'controller' : 'controller-2'
      expect(environment['CONTROLLER_NATS_NKEY_FILE']).toBe(`${KEYS}/controller-head-${i + 1}.nk`)
      expect(command.join()).toContain(`controller-head-${i + 1}=${KEYS}s/${folder}`)
      expect([...mounts, ...(services['broker-config']?.volumes ?? [])]).toContain(
        `key-${folder}:${KEYS}s/${folder}`,
      )
      expect(own).toContain(`key-${folder}:${KEYS}:ro`)
      expect(own).toContain('secrets-key:/etc/headroom/secrets')
    }
    expect(added.services['secrets-key']?.volumes).toEqual(['secrets-key:/etc/headroom/secrets'])
  })

  it('confines what it adds, and publishes nothing beyond this host', () => {
    for (const name of ['postgres', 'secrets-key', 'controller-2']) {
      const each = added.services[name]
      expect([each?.read_only, each?.cap_drop, each?.security_opt]).toEqual([
        true,
        ['ALL'],
        ['no-new-privileges:true'],
      ])
      expect(each?.user).toMatch(/^[1-9]\d*:[1-9]\d*$/)
    }
    expect(added.services['controller-2']?.ports).toEqual(['127.0.0.1:30180:30080'])
    expect(added.services['postgres']).not.toHaveProperty('ports')
    expect(Object.keys(added.volumes)).toHaveLength(4)
  })
})

function byText(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}
