/** The screens that docs/page.md shows, and how one comes there. */
import { join } from 'node:path'
import type { Locator, Page } from 'playwright-core'
import type { NodePage } from '../../controller/api/nodes/schema.ts'
import type { SimulationBody } from '../../controller/api/simulations/schema.ts'
import type { TaskPage } from '../../controller/api/tasks/schema.ts'
import { ServedSetBack } from '../../test/support/served-set-back.ts'

const UI = join(import.meta.dirname, '../../dist/ui')

export type Ask = <T>(method: 'GET' | 'POST' | 'PATCH', path: string, body?: object) => Promise<T>

export interface Screen {
  readonly name: string
  /** Its address, once what it shows is there. */
  readonly pathOf: (ask: Ask) => string | Promise<string>
  readonly prepare?: (page: Page) => Promise<void>
  /** A controller of its own; left out: the one of all screens. */
  readonly serve?: () => Promise<{ readonly url: string; end(): Promise<void> }>
  /** The visible part of the page; omitted: the part in the window. */
  readonly part?: (page: Page) => Locator
}

const SWEPT = {
  scenario: 'thrash-guard',
  overcommit_percents: [0, 50, 100],
  seeds: [1, 2],
  objectives: ['queue_wait.p95<=30m'],
}

export const SCREENS: readonly Screen[] = [
  { name: 'tasks', pathOf: () => '/tasks' },
  {
    name: 'task',
    pathOf: async (ask) =>
      `/tasks/${(await ask<TaskPage>('GET', '/tasks?state=running&limit=1')).items[0]?.id ?? ''}`,
  },
  { name: 'nodes', pathOf: () => '/nodes' },
  {
    name: 'node',
    pathOf: async (ask) => `/nodes/${(await ask<NodePage>('GET', '/nodes')).items[0]?.node_id ?? ''}`,
  },
  { name: 'groups', pathOf: () => '/groups' },
  { name: 'planner', pathOf: () => '/planner' },
  {
    name: 'comparison',
    pathOf: comparison,
    part: (page) => page.getByRole('region', { name: 'GPU timelines' }),
  },
  {
    name: 'before-after',
    pathOf: async (ask) => `/planner/${await swept(ask)}`,
    part: (page) => page.getByRole('region', { name: 'Before and after' }),
  },
  { name: 'simulator', pathOf: () => '/simulator' },
  {
    name: 'editor',
    pathOf: () => '/planner?source=text',
    prepare: beginWithSmall,
  },
  { name: 'debrief', pathOf: debrief },
  { name: 'events', pathOf: () => '/events' },
  { name: 'settings', pathOf: () => '/settings' },
  // Late, so that its charts have a past.
  { name: 'dashboard', pathOf: () => '/' },
  { name: 'recovery', serve: setBack, pathOf: () => '/recovery', part: (page) => page.getByRole('main') },
]

/** A restored controller: one node has not reported, attempts on the others are unknown to the store. */
function setBack(): Promise<ServedSetBack> {
  const later = ['train-resnet', 'train-bert', 'notebook-7'].map((id) => ({
    id,
    vramMib: 4_000,
    owner: 'ada',
  }))
  return ServedSetBack.restored({ uiDir: UI, silent: ['n3'], later })
}

/** Two runs of a sweep, one below the other. */
async function comparison(ask: Ask): Promise<string> {
  return `/planner/${await swept(ask)}?compare=0-1,100-1`
}

/** The id of a sweep that is done. */
async function swept(ask: Ask): Promise<string> {
  const { id } = await ask<SimulationBody>('POST', '/simulations/sweep', SWEPT)
  while ((await ask<SimulationBody>('GET', `/simulations/${id}`)).state !== 'done')
    await new Promise((resolve) => setTimeout(resolve, 200))
  return id
}

async function beginWithSmall(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Start with an example' }).click()
  await page.getByText('Valid.').waitFor()
}

/** An exercise in which half of what was wrong was put right. */
async function debrief(ask: Ask): Promise<string> {
  const { id } = await ask<SimulationBody>('POST', '/exercises/undo-a-noswap-mistake/start', {})
  const { items } = await ask<TaskPage>('GET', `/simulations/${id}/api/v1/tasks?q=notebook-1`)
  await ask('PATCH', `/simulations/${id}/api/v1/tasks/${items[0]?.id ?? ''}`, { noswap: 0 })
  await ask('POST', `/simulations/${id}/finish`, {})
  return `/simulator/${id}/exercise`
}
