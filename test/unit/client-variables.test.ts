import { afterEach, describe, expect, it, vi } from 'vitest'
import { openClient } from '../../cli/command/session.ts'
import { createClient } from '../../clients/typescript/client.ts'
import { VariableError, withClientVariables } from '../../clients/typescript/client-variables.ts'
import { NODE_ID } from '../support/api-world.ts'
import { askedApi } from '../support/asked.ts'

const ALL = {
  VENDOR_SWAP_FROM_VRAM: '0',
  CONTROLLER_NODE_GROUP_IDS: 'g1, g2,g1',
  REQUIRED_VRAM: '8Gi',
  PRIO: '3',
  GPU_COUNT: '2',
  GPU_MODE: 'exclusive',
}

describe('the environment variables of a client', () => {
  afterEach(() => vi.unstubAllEnvs())

  it('provide values that a submission omits', () => {
    expect(withClientVariables({}, ALL)).toEqual({
      request: {
        vram_mib: 8192,
        priority: 3,
        gpu_count: 2,
        gpu_mode: 'exclusive',
        noswap: 1,
        groups: ['g1', 'g2'],
      },
      taken: ['REQUIRED_VRAM=8Gi', 'PRIO=3', 'GPU_COUNT=2', 'GPU_MODE=exclusive'],
    })
    expect(withClientVariables({}, {})).toEqual({ request: {}, taken: [] })
    expect(withClientVariables({}, { PRIO: ' ', GPU_MODE: '', VENDOR_SWAP_FROM_VRAM: '1' })).toEqual({
      request: { noswap: 0 },
      taken: [],
    })
  })

  it('never replace given values and are not even read then', () => {
    const given = {
      vram_mib: 1,
      priority: 0,
      gpu_count: 1,
      gpu_mode: 'shared',
      noswap: 0,
      groups: [],
    } as const
    expect(withClientVariables(given, { ...ALL, PRIO: 'high' })).toEqual({ request: given, taken: [] })
  })

  it.each([
    ['REQUIRED_VRAM', '8'],
    ['REQUIRED_VRAM', '0Gi'],
    ['PRIO', '5'],
    ['PRIO', 'P1'],
    ['GPU_COUNT', '0'],
    ['GPU_COUNT', '1.5'],
    ['GPU_MODE', 'Shared'],
    ['VENDOR_SWAP_FROM_VRAM', 'yes'],
    ['CONTROLLER_NODE_GROUP_IDS', 'a,,b'],
  ])('%s=%s causes an error that names the variable', (name, value) => {
    expect(() => withClientVariables({}, { [name]: value })).toThrow(VariableError)
    expect(() => withClientVariables({}, { [name]: value })).toThrow(`${name} is "${value}"; it must be `)
  })

  it('of Headroom replace those of the specification, and alone are used', () => {
    const both = { ...ALL, HEADROOM_SWAP_FROM_VRAM: '1', HEADROOM_GROUPS: 'g3' }
    expect(withClientVariables({}, both).request).toMatchObject({ noswap: 0, groups: ['g3'] })
    expect(withClientVariables({}, { ...ALL, HEADROOM_SWAP_FROM_VRAM: ' ' }).request).toMatchObject({
      noswap: 1,
    })
    expect(() => withClientVariables({}, { ...ALL, HEADROOM_GROUPS: 'a,' })).toThrow(
      'HEADROOM_GROUPS is "a,"',
    )
    expect(withClientVariables({}, { HEADROOM_SWAP_FROM_VRAM: '0' })).toEqual({
      request: { noswap: 1 },
      taken: [],
    })
  })

  it('contain the address of the controller, where HEADROOM_URL is before VENDOR_CONTROLLER_URL', () => {
    vi.stubEnv('VENDOR_CONTROLLER_URL', 'http://vendor.example')
    expect(createClient().url).toBe('http://vendor.example')
    vi.stubEnv('HEADROOM_URL', 'http://own.example')
    expect(createClient().url).toBe('http://own.example')
    expect(createClient({ url: 'http://given.example' }).url).toBe('http://given.example')
    expect(() => openClient({})).not.toThrow()
    vi.stubEnv('HEADROOM_URL', 'own.example')
    expect(() => openClient({})).toThrow(/^HEADROOM_URL: "own\.example" is not the address of a controller/)
  })

  it('apply to the client module', async () => {
    const { world, url } = await askedApi()
    await world.addNode({ id: NODE_ID, gpus: 2, physicalMib: 49_140 })
    const submitted = async (environment: Record<string, string>, request = {}) => {
      const { id } = await createClient({ url, environment }).tasks.submit({ vram_mib: 10, ...request })
      return world.open.get(id)?.spec
    }
    expect(await submitted({ VENDOR_SWAP_FROM_VRAM: '0', CONTROLLER_NODE_GROUP_IDS: 'g1' })).toMatchObject({
      noswap: 1,
      groups: ['g1'],
    })
    expect(await submitted({ VENDOR_SWAP_FROM_VRAM: '0' }, { noswap: 0 })).toMatchObject({
      noswap: 0,
      groups: [],
    })
    expect(await submitted({ PRIO: '4', REQUIRED_VRAM: '1Gi' })).toMatchObject({ priority: 4, vramMib: 10 })
  })
})
