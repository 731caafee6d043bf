/**
 * The first page: what the cluster does now, and one setting. It asks the REST interface every two seconds and shows what it is told;
 * everything it shows goes in as text. No build step, no framework.
 */

const POLL_MS = 2_000
const ANSWER_WITHIN_MS = 5_000
const TASKS_SHOWN = 25

const byId = (id) => document.getElementById(id)
const setText = (id, text) => {
  byId(id).textContent = text
}

// ---- asking ----

/** What the last answers said; `etag` is that of the configuration shown, so that nobody's change is overwritten unseen. */
const known = { etag: null, percent: null, answeredAt: null }

/** Kept for this tab alone, until it is closed. */
const TOKEN = 'headroom-token'

async function ask(path, options = {}) {
  const token = sessionStorage.getItem(TOKEN)
  const headers = { ...options.headers, ...(token === null ? {} : { Authorization: `Bearer ${token}` }) }
  const response = await fetch(`/api/v1${path}`, { ...options, headers, signal: AbortSignal.timeout(ANSWER_WITHIN_MS) })
  const body = await response.json()
  if (response.status === 401) byId('sign-in').hidden = false
  if (!response.ok) throw new Refused(body.detail ?? `The server answered ${response.status}.`, body.code)
  return { body, etag: response.headers.get('etag') }
}

/** The server is there and said no. */
class Refused extends Error {
  constructor(message, code) {
    super(message)
    this.code = code
  }
}

async function refresh() {
  try {
    const [summary, config, nodes, tasks] = await Promise.all([
      ask('/summary'),
      ask('/config'),
      ask('/nodes?limit=200'),
      ask(`/tasks?limit=${TASKS_SHOWN}`),
    ])
    showSummary(summary.body)
    showConfig(config.body, config.etag)
    showNodes(nodes.body)
    showTasks(tasks.body)
    known.answeredAt = new Date()
    showFresh()
  } catch (error) {
    showStale(error)
  }
}

function signIn(event) {
  event.preventDefault()
  sessionStorage.setItem(TOKEN, byId('token').value.trim())
  byId('token').value = ''
  void refresh()
}

/** Who signs in by a provider gets there by a link; who has just come back without success is told why. */
async function showSignIn() {
  const failure = new URLSearchParams(location.search).get('sign_in_failed')
  if (failure !== null) {
    byId('sign-in-failed').hidden = false
    setText('sign-in-failed', FAILURES[failure] ?? 'You were not signed in.')
    history.replaceState(null, '', location.pathname)
  }
  const { body } = await ask('/auth/session')
  if (body.provider === null) return
  byId('provider').hidden = false
  setText('provider-link', `sign in at ${body.provider}`)
}

const FAILURES = {
  expired: 'Signing in took too long, or was begun in another browser: try again.',
  denied: 'The provider did not sign you in.',
  no_role: 'You are known, but have no role here: ask an administrator.',
  provider_unreachable: 'The provider cannot be asked now: try again later.',
}

async function poll() {
  if (!document.hidden) await refresh()
  setTimeout(poll, POLL_MS)
}

// ---- how fresh it is ----

function showFresh() {
  byId('sign-in').hidden = true
  byId('figures').setAttribute('aria-busy', 'false')
  byId('figures').classList.remove('stale-figures')
  byId('freshness').classList.remove('stale')
  setText('freshness', `Updated ${clockTime(known.answeredAt)}`)
}

function showStale(error) {
  byId('figures').classList.add('stale-figures')
  byId('freshness').classList.add('stale')
  const since = known.answeredAt === null ? 'Nothing is known yet.' : `The figures are stale: they are from ${clockTime(known.answeredAt)}.`
  const why = error instanceof Refused ? error.message : 'The server does not answer.'
  setText('freshness', `${why} ${since}`)
}

// ---- the tiles ----

function showSummary(summary) {
  const { tasks, gpus, nodes, window } = summary
  showFleet(summary.fleet)
  const seconds = window === null ? '' : `, last ${Math.round(window.seconds)} s`
  setText('utilization', percent(summary.utilization_percent))
  setText('utilization-note', summary.utilization_unknown_because ?? `of ${gpus.up} GPUs on ${nodes.up} of ${nodes.total} nodes${seconds}`)
  showStarvation(summary)
  setText('tasks-pending', whole(tasks.by_list.pending))
  setText('tasks-running', whole(tasks.by_list.running))
  setText('tasks-completed', whole(tasks.by_list.completed))
  showPendingReasons(summary.pending_by_reason)
  showVram(summary.vram)
}

function showFleet(fleet) {
  const badge = byId('fleet')
  badge.hidden = false
  badge.textContent = fleet === 'simulated' ? 'simulated fleet' : 'live'
  badge.classList.toggle('simulated', fleet === 'simulated')
}

function showStarvation({
  starvation_percent: starvation,
  starvation_unknown_because: unknown,
  starvation_compute_is_estimate: isEstimate,
}) {
  setText('starvation', percent(starvation?.total ?? null))
  for (const part of ['queue', 'swap', 'compute']) setText(`starvation-${part}`, percent(starvation?.[part] ?? null))
  setText('starvation-note', unknown ?? (isEstimate ? 'The compute part is an estimate.' : ''))
  const { queue = 0, swap = 0, compute = 0 } = starvation ?? {}
  const parts = [
    ['queue', queue],
    ['swap', swap],
    ['compute', compute],
  ]
  byId('starvation-bar').replaceChildren(bar(parts, 100, null, `Starvation ${percent(starvation?.total ?? null)}`))
}

function showPendingReasons({ counted, of, reasons }) {
  const lines = reasons.map(({ reason, tasks }) => element('li', `${whole(tasks)} × ${reason}`))
  if (counted < of) lines.push(element('li', `of the first ${whole(counted)} of ${whole(of)}`))
  byId('pending-reasons').replaceChildren(...lines)
}

function showVram(vram) {
  setText('vram-physical', gib(vram.physical_mib))
  setText('vram-resident', gib(vram.resident_mib))
  setText('vram-foreign', gib(vram.foreign_mib))
  setText('vram-committed', gib(vram.committed_mib))
  setText('vram-schedulable', gib(vram.effective_schedulable_mib))
  setText('vram-swapped', gib(vram.swapped_mib))
  byId('vram-bar').replaceChildren(vramBar(vram, 'The cluster'))
}

// ---- the one setting ----

function showConfig(config, etag) {
  const value = config.default_vram_overcommit_percent
  setText('overcommit', `${value} %`)
  const from = config.source === 'persisted' ? `set, revision ${config.revision}` : 'from the environment'
  setText('overcommit-note', `${from}; strategy ${config.placement_strategy}, reserve ${gib(config.safety_reserve_mib)}`)
  const input = byId('percent')
  const isUntouched = input.value === '' || input.value === String(known.percent)
  if (isUntouched && document.activeElement !== input) input.value = String(value)
  known.etag = etag
  known.percent = value
}

async function setPercent(event) {
  event.preventDefault()
  const button = event.submitter ?? byId('overcommit-form').querySelector('button')
  const text = byId('percent').value
  button.disabled = true
  try {
    const body = JSON.stringify({ default_vram_overcommit_percent: text === '' ? null : Number(text) })
    const headers = { 'Content-Type': 'application/json', ...(known.etag === null ? {} : { 'If-Match': known.etag }) }
    const { body: config, etag } = await ask('/config', { method: 'PUT', headers, body })
    showConfig(config, etag)
    showAnswer('done', `Set to ${config.default_vram_overcommit_percent} %.`)
  } catch (error) {
    showAnswer('failed', whyNotSet(error))
    if (error.code === 'precondition_failed') void refresh()
  } finally {
    button.disabled = false
  }
}

function whyNotSet(error) {
  if (!(error instanceof Refused)) return 'The server does not answer; it is not known whether the value was set.'
  if (error.code === 'precondition_failed') return 'Somebody has changed the configuration meanwhile. Look at it, then set again.'
  return error.message
}

function showAnswer(kind, text) {
  const answer = byId('percent-answer')
  answer.className = `answer ${kind}`
  answer.textContent = text
}

// ---- the tables ----

function showNodes({ items, total }) {
  setText('nodes-count', whole(total))
  byId('nodes').replaceChildren(...items.map(nodeRow))
  setText(
    'nodes-note',
    total === 0 ? 'No GPU node has registered yet.' : items.length < total ? `The first ${items.length} are shown.` : '',
  )
}

function nodeRow(node) {
  const tasks = new Set(node.gpus.flatMap((gpu) => gpu.task_ids))
  const { effective_percent: effective, source } = node.overcommit
  const status = element('span', node.status, `state ${node.status}`)
  const gpus = element('div', '', 'gpus')
  gpus.append(...node.gpus.map((gpu) => vramBar(gpu.vram, `GPU ${gpu.index} (${gpu.model})`)))
  return row(
    cell('Node', node.name, small(node.groups.length > 0 ? `group ${node.groups.join(', ')}` : '')),
    cell('Status', '', status, small(node.cordoned ? 'cordoned' : '')),
    cell('Overcommit', `${effective} %`, small(source === 'node' ? 'own' : 'global')),
    cell('Tasks', whole(tasks.size)),
    cell('GPUs', '', gpus),
  )
}

function showTasks({ items, total }) {
  setText('tasks-count', total === null ? '' : `of ${whole(total)}`)
  byId('tasks').replaceChildren(...items.map(taskRow))
  setText('tasks-note', items.length === 0 ? 'No task has been submitted yet.' : '')
}

function taskRow(task) {
  const isAway = task.placement !== null && task.residency !== 'resident' && task.residency !== 'none'
  const state = element('span', task.state, `state ${task.state}`)
  const demand = task.vram_mib === null ? 'all' : gib(task.vram_mib)
  return row(
    cell('Task', task.name),
    cell('State', '', state, isAway ? element('small', task.residency.replaceAll('_', ' '), 'state swapped') : small('')),
    cell('Priority', `P${task.priority}`, small(task.noswap === 1 ? 'noswap' : '')),
    cell('VRAM', task.gpu_count === 1 ? demand : `${task.gpu_count} × ${demand}`),
    cell('Where, or why not', whereOrWhyNot(task)),
  )
}

function whereOrWhyNot({ wait, placement, end_reason: endReason, finished_at: finishedAt }) {
  const where = placement === null ? '' : `${placement.node_name}, GPU ${placement.gpus.join(', ')}`
  if (wait !== null) return where === '' ? wait.sentence : `${where}: ${wait.sentence}`
  if (where !== '') return where
  return endReason ?? (finishedAt === null ? '' : `ended ${clockTime(new Date(finishedAt))}`)
}

// ---- bars ----

const SVG = 'http://www.w3.org/2000/svg'

/** Resident and foreign bytes, what is committed beyond them, and a line where physical VRAM ends. */
function vramBar(vram, name) {
  const { physical_mib: physical, resident_mib: resident, foreign_mib: foreign, committed_mib: committed } = vram
  const scale = Math.max(physical, vram.effective_schedulable_mib, resident + foreign, committed + foreign, 1)
  const parts = [
    ['foreign', foreign],
    ['resident', resident],
    ['committed', Math.max(0, committed - resident)],
  ]
  const words = `${name}: ${gib(resident)} resident, ${gib(foreign)} foreign, ${gib(committed)} committed, of ${gib(physical)}`
  return bar(parts, scale, physical, words)
}

/** Parts beside each other on one scale, with a line at `limit`. Sizes are attributes: the page's policy allows no inline style. */
function bar(parts, scale, limit, words) {
  const svg = shape('svg', { class: 'bar', viewBox: '0 0 100 8', preserveAspectRatio: 'none', role: 'img', 'aria-label': words })
  const title = shape('title', {})
  title.textContent = words
  svg.append(title, shape('rect', { class: 'track', width: 100, height: 8 }))
  let x = 0
  for (const [name, size] of parts) {
    const width = (100 * size) / scale
    if (width > 0) svg.append(shape('rect', { class: name, x, width, height: 8 }))
    x += width
  }
  if (limit !== null && limit < scale) svg.append(shape('rect', { class: 'limit', x: (100 * limit) / scale - 0.4, width: 0.8, height: 8 }))
  return svg
}

function shape(name, attributes) {
  const node = document.createElementNS(SVG, name)
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, String(value))
  return node
}

// ---- elements and words ----

function element(name, text, className = '') {
  const node = document.createElement(name)
  node.textContent = text
  if (className !== '') node.className = className
  return node
}

const small = (text) => (text === '' ? '' : element('small', text))

function row(...cells) {
  const tr = document.createElement('tr')
  tr.append(...cells)
  return tr
}

/** The label is shown on narrow screens, where the table has no head. */
function cell(label, text, ...more) {
  const td = document.createElement('td')
  td.dataset.label = label
  const value = element('div', text)
  value.append(...more)
  td.append(value)
  return td
}

const percent = (value) => (value === null ? '–' : `${value.toFixed(1)} %`)
const whole = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, '\u202f')

function gib(mib) {
  const value = mib / 1024
  return value >= 10_240 ? `${(value / 1024).toFixed(1)} TiB` : `${value.toFixed(value < 100 ? 1 : 0)} GiB`
}

const clockTime = (date) => date.toTimeString().slice(0, 8)

// ---- start ----

byId('sign-in').addEventListener('submit', signIn)
showSignIn().catch(() => {})
byId('overcommit-form').addEventListener('submit', setPercent)
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) void refresh()
})
ask('/version')
  .then(({ body }) => setText('version', `Headroom ${body.version}`))
  .catch(() => setText('version', 'Headroom'))
void poll()
