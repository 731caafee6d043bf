/**
 * An API server in memory: versions, conflicts, lists, watches, patches, status, binding and validation as
 * the real one has them. Its clock and its identifiers are given, so that it runs in virtual time.
 */
import type { StructuralSchema } from '../contract/crd.ts'
import type { FieldFault } from '../contract/field-fault.ts'
import type { ObjectMeta } from '../contract/kubernetes.ts'
import {
  apiVersionOf,
  CONFLICT,
  type DeleteOptions,
  GONE,
  INVALID,
  type KubeApi,
  KubeError,
  type KubeList,
  type KubeObject,
  type KubePatch,
  type ListOptions,
  NOT_FOUND,
  type ObjectKey,
  type ResourceKind,
  type WatchEvent,
  type WatchOptions,
  type WriteOptions,
} from '../ports/kube-api.ts'
import { matchesSelector } from './label-selector.ts'
import { isEqual, isRecord, jsonPatched, mergePatched } from './patches.ts'
import { pruned, schemaFaults } from './schema-faults.ts'
import { EventHistory, type RecordedEvent } from './watchers.ts'

/** A kind that the server serves. */
export interface ServedKind extends ResourceKind {
  /** Schema of a custom resource: objects are checked, and unknown fields are dropped. */
  readonly schema?: StructuralSchema
  /** `status` is written through its subresource only. */
  readonly hasStatus?: boolean
  /** Rules beyond the schema; `before` is null for a new object. */
  readonly rules?: (object: KubeObject, before: KubeObject | null) => readonly FieldFault[]
}

export interface MemoryApiOptions {
  readonly kinds: readonly ServedKind[]
  /** ISO 8601, whole seconds. */
  readonly now: () => string
  readonly newUid: () => string
  /** Events that a kind keeps for watches. */
  readonly maxEvents?: number
  /** Called within each write, in their order. */
  readonly onChange?: (kind: ResourceKind, change: StoredChange) => void
}

export type StoredChange = Pick<RecordedEvent, 'type' | 'object' | 'before'>

const DEFAULT_MAX_EVENTS = 1_000

interface Store {
  readonly served: ServedKind
  readonly objects: Map<string, KubeObject>
  readonly history: EventHistory
}

export class MemoryApi implements KubeApi {
  readonly #options: MemoryApiOptions
  readonly #stores: ReadonlyMap<string, Store>
  #version = 0
  #named = 0
  readonly #faults: KubeError[] = []

  constructor(options: MemoryApiOptions) {
    this.#options = options
    const { maxEvents = DEFAULT_MAX_EVENTS } = options
    this.#stores = new Map(
      options.kinds.map((served) => [
        placeOf(served),
        { served, objects: new Map(), history: new EventHistory(maxEvents) },
      ]),
    )
  }

  async get(kind: ResourceKind, key: ObjectKey): Promise<KubeObject> {
    this.#failIfDue()
    return structuredClone(found(this.#store(kind), key))
  }

  async list(kind: ResourceKind, options: ListOptions = {}): Promise<KubeList> {
    this.#failIfDue()
    const { namespace, labelSelector, limit = Infinity, continueFrom } = options
    const { objects } = this.#store(kind)
    const [version, after] = continueFrom === undefined ? [this.#version, ''] : tokenOf(continueFrom)
    const all = [...objects.entries()]
      .filter(([name, { metadata }]) => {
        const isInNamespace = namespace === undefined || metadata.namespace === namespace
        return name > after && isInNamespace && matchesSelector(labelSelector, metadata.labels)
      })
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
    const page = all.slice(0, limit)
    const last = page.at(-1)?.[0] ?? ''
    return {
      items: structuredClone(page.map(([, object]) => object)),
      resourceVersion: String(version),
      continueFrom: page.length < all.length ? JSON.stringify([version, last]) : null,
    }
  }

  async *watch(kind: ResourceKind, options: WatchOptions): AsyncGenerator<WatchEvent> {
    this.#failIfDue()
    const { namespace, labelSelector } = options
    const matches = ({ metadata }: KubeObject): boolean =>
      (namespace === undefined || metadata.namespace === namespace) &&
      matchesSelector(labelSelector, metadata.labels)
    for await (const event of this.#store(kind).history.watch(options, matches)) yield structuredClone(event)
  }

  async create(kind: ResourceKind, object: KubeObject, options: WriteOptions = {}): Promise<KubeObject> {
    this.#failIfDue()
    if (options.subresource === 'binding') return this.#bind(kind, object)
    const store = this.#store(kind)
    const { generateName, name = `${generateName ?? ''}${this.#suffix()}` } = object.metadata
    if (generateName === undefined && object.metadata.name === undefined)
      throw invalid(store, '', [{ path: 'metadata.name', message: 'name or generateName is required' }])
    const key = keyOf(store, { ...object.metadata, name })
    if (store.objects.has(key))
      throw new KubeError(CONFLICT, 'AlreadyExists', `${titleOf(store, name)} already exists`)
    const { status: _status, ...rest } = object
    const created = this.#checked(store, null, {
      ...(store.served.hasStatus === true ? rest : object),
      metadata: {
        ...object.metadata,
        name,
        uid: this.#options.newUid(),
        creationTimestamp: this.#options.now(),
        ...(store.served.hasStatus === true ? { generation: 1 } : {}),
      },
    })
    return this.#commit(store, key, 'ADDED', null, created, options)
  }

  async replace(kind: ResourceKind, object: KubeObject, options: WriteOptions = {}): Promise<KubeObject> {
    this.#failIfDue()
    const store = this.#store(kind)
    // The real server updates custom resources only from a known version.
    if (store.served.schema !== undefined && object.metadata.resourceVersion === undefined)
      throw invalid(store, object.metadata.name ?? '', [
        { path: 'metadata.resourceVersion', message: 'must be specified for an update' },
      ])
    return this.#update(store, { ...object.metadata, name: object.metadata.name ?? '' }, object, options)
  }

  async patch(
    kind: ResourceKind,
    key: ObjectKey,
    { type, body }: KubePatch,
    options: WriteOptions = {},
  ): Promise<KubeObject> {
    this.#failIfDue()
    const store = this.#store(kind)
    const before = found(store, key)
    const after = type === 'merge' ? mergePatched(before, body) : jsonPatched(before, body)
    if (!isRecord(after) || !isRecord(after['metadata']))
      throw new KubeError(INVALID, 'Invalid', 'the patch leaves no object')
    if (after['metadata']['uid'] !== before.metadata.uid)
      throw invalid(store, key.name, [{ path: 'metadata.uid', message: 'field is immutable' }])
    return this.#update(store, key, after as KubeObject, options)
  }

  async delete(kind: ResourceKind, key: ObjectKey, options: DeleteOptions = {}): Promise<void> {
    this.#failIfDue()
    const store = this.#store(kind)
    const before = found(store, key)
    const { uid, resourceVersion, finalizers = [], deletionTimestamp } = before.metadata
    const isOther =
      (options.uid !== undefined && options.uid !== uid) ||
      (options.resourceVersion !== undefined && options.resourceVersion !== resourceVersion)
    if (isOther) throw conflict(store, key.name, 'a precondition of the deletion does not hold')
    if (finalizers.length === 0) this.#remove(store, before)
    else if (deletionTimestamp === undefined) {
      const metadata = { ...before.metadata, deletionTimestamp: this.#options.now() }
      this.#commit(store, keyOf(store, key), 'MODIFIED', before, { ...before, metadata }, {})
    }
  }

  // ---- faults ----

  /** The next request is refused with this. */
  failNext(error: KubeError): void {
    this.#faults.push(error)
  }

  /** Watches from versions before the current one get 410. */
  compact(): void {
    for (const { history } of this.#stores.values()) history.compact(this.#version)
  }

  dropWatches(): void {
    for (const { history } of this.#stores.values()) history.dropWatches()
  }

  sendBookmarks(): void {
    for (const { history, served } of this.#stores.values())
      history.bookmark(this.#version, {
        ...typeOf(served),
        metadata: { resourceVersion: String(this.#version) },
      })
  }

  get watchCount(): number {
    return [...this.#stores.values()].reduce((sum, { history }) => sum + history.watcherCount, 0)
  }

  // ---- inside ----

  #failIfDue(): void {
    const fault = this.#faults.shift()
    if (fault !== undefined) throw fault
  }

  #store(kind: ResourceKind): Store {
    const store = this.#stores.get(placeOf(kind))
    if (store === undefined)
      throw new KubeError(NOT_FOUND, 'NotFound', 'the server could not find the requested resource')
    return store
  }

  #suffix(): string {
    this.#named += 1
    return this.#named.toString(36).padStart(5, '0')
  }

  #update(store: Store, key: ObjectKey, object: KubeObject, options: WriteOptions): KubeObject {
    const before = found(store, key)
    const { served } = store
    const { resourceVersion: expected, uid } = object.metadata
    if (uid !== undefined && uid !== before.metadata.uid)
      throw conflict(store, key.name, 'its uid is another')
    if (expected !== undefined && expected !== before.metadata.resourceVersion)
      throw conflict(
        store,
        key.name,
        'the object has been modified; please apply your changes to the latest version',
      )
    const ofStatus = options.subresource === 'status'
    if (ofStatus && served.hasStatus !== true)
      throw new KubeError(NOT_FOUND, 'NotFound', 'the server could not find the requested resource')
    const merged = ofStatus
      ? { ...before, status: object['status'] }
      : { ...object, ...(served.hasStatus === true ? { status: before['status'] } : {}) }
    const { generation = 1 } = before.metadata
    const isChanged = !isEqual(withoutMeta(before), withoutMeta(merged))
    const written = this.#checked(store, before, {
      ...(merged as KubeObject),
      metadata: {
        ...(ofStatus ? before.metadata : object.metadata),
        ...fixedMeta(before.metadata),
        ...(served.hasStatus === true
          ? { generation: isChanged && !ofStatus ? generation + 1 : generation }
          : {}),
      },
    })
    if (isEqual(written, before)) return structuredClone(before)
    const stored = this.#commit(store, keyOf(store, key), 'MODIFIED', before, written, options)
    const { deletionTimestamp, finalizers = [] } = written.metadata
    if (deletionTimestamp !== undefined && finalizers.length === 0 && options.isDryRun !== true)
      this.#remove(store, stored)
    return stored
  }

  /** Binding a pod writes its node and the annotations of the binding at once. */
  #bind(kind: ResourceKind, binding: KubeObject): KubeObject {
    const store = this.#store(kind)
    const { name = '', namespace, annotations = {}, uid, resourceVersion } = binding.metadata
    const key = { name, ...(namespace === undefined ? {} : { namespace }) }
    const pod = found(store, key)
    const spec = isRecord(pod['spec']) ? pod['spec'] : {}
    const gates = spec['schedulingGates']
    const target = isRecord(binding['target']) ? binding['target']['name'] : undefined
    if (uid !== undefined && uid !== pod.metadata.uid) throw conflict(store, name, 'its uid is another')
    if (resourceVersion !== undefined && resourceVersion !== pod.metadata.resourceVersion)
      throw conflict(store, name, 'its version is another')
    if (spec['nodeName'] !== undefined)
      throw conflict(store, name, `pod ${name} is already assigned to node "${String(spec['nodeName'])}"`)
    if (Array.isArray(gates) && gates.length > 0)
      throw conflict(store, name, `pod ${name} has non-empty .spec.schedulingGates`)
    const bound: KubeObject = {
      ...pod,
      metadata: { ...pod.metadata, annotations: { ...pod.metadata.annotations, ...annotations } },
      spec: { ...spec, nodeName: target },
    }
    this.#commit(store, keyOf(store, key), 'MODIFIED', pod, bound, {})
    return { metadata: {}, status: 'Success' }
  }

  #checked(store: Store, before: KubeObject | null, object: KubeObject): KubeObject {
    const { schema, rules } = store.served
    const kept = (schema === undefined ? object : pruned(schema, object)) as KubeObject
    const whole = withoutUndefined({ ...typeOf(store.served), ...kept, metadata: object.metadata })
    const faults = [
      ...(schema === undefined ? [] : schemaFaults(schema, whole)),
      ...(rules === undefined ? [] : rules(whole, before)),
    ]
    if (faults.length > 0) throw invalid(store, object.metadata.name ?? '', faults)
    return whole
  }

  #commit(
    { served, history, objects }: Store,
    key: string,
    type: 'ADDED' | 'MODIFIED',
    before: KubeObject | null,
    object: KubeObject,
    { isDryRun = false }: WriteOptions,
  ): KubeObject {
    if (isDryRun) return structuredClone(object)
    const stored = this.#versioned(object)
    objects.set(key, stored)
    history.record({ type, object: stored, before, version: this.#version })
    this.#options.onChange?.(served, { type, object: stored, before })
    return structuredClone(stored)
  }

  #remove(store: Store, before: KubeObject): void {
    store.objects.delete(keyOf(store, { ...before.metadata, name: before.metadata.name ?? '' }))
    const object = this.#versioned(before)
    store.history.record({ type: 'DELETED', object, before, version: this.#version })
    this.#options.onChange?.(store.served, { type: 'DELETED', object, before })
  }

  #versioned(object: KubeObject): KubeObject {
    this.#version += 1
    return structuredClone({
      ...object,
      metadata: { ...object.metadata, resourceVersion: String(this.#version) },
    })
  }
}

function placeOf({ group, version, plural }: ResourceKind): string {
  return `${group}/${version}/${plural}`
}

function typeOf(kind: ResourceKind): { apiVersion: string; kind: string } {
  return { apiVersion: apiVersionOf(kind), kind: kind.kind }
}

function keyOf({ served }: Store, { name, namespace }: ObjectKey): string {
  return served.isNamespaced ? `${namespace ?? ''}/${name}` : name
}

function found(store: Store, key: ObjectKey): KubeObject {
  const object = store.objects.get(keyOf(store, key))
  if (object === undefined)
    throw new KubeError(NOT_FOUND, 'NotFound', `${titleOf(store, key.name)} not found`)
  return object
}

function titleOf({ served: { plural, group } }: Store, name: string): string {
  return `${plural}${group === '' ? '' : `.${group}`} "${name}"`
}

function conflict(store: Store, name: string, why: string): KubeError {
  return new KubeError(
    CONFLICT,
    'Conflict',
    `Operation cannot be fulfilled on ${titleOf(store, name)}: ${why}`,
  )
}

function invalid({ served: { kind, group } }: Store, name: string, faults: readonly FieldFault[]): KubeError {
  const what = faults.map(({ path, message }) => `${path}: ${message}`).join(', ')
  const title = `${kind}${group === '' ? '' : `.${group}`} "${name}"`
  return new KubeError(INVALID, 'Invalid', `${title} is invalid: ${what}`, { faults })
}

/** Returns the fields that an update cannot change. Absent fields stay absent. */
function fixedMeta(before: ObjectMeta): ObjectMeta {
  const { name, namespace, uid, creationTimestamp, deletionTimestamp, resourceVersion } = before
  const all = { name, namespace, uid, creationTimestamp, deletionTimestamp, resourceVersion }
  return JSON.parse(JSON.stringify(all)) as ObjectMeta
}

function withoutMeta({ metadata: _metadata, status: _status, ...rest }: KubeObject): object {
  return rest
}

/** Returns the object as JSON represents it. */
function withoutUndefined(object: KubeObject): KubeObject {
  return JSON.parse(JSON.stringify(object)) as KubeObject
}

function tokenOf(text: string): readonly [number, string] {
  const token: unknown = JSON.parse(text)
  if (Array.isArray(token)) return [Number(token[0]), String(token[1])]
  throw new KubeError(GONE, 'Expired', 'the provided continue parameter is too old')
}
