// What KafkaJS can do, each feature tried once: a line "ok NAME" or "no NAME WHY".
//   node kafkajs.js ADDRESS

const { Kafka, logLevel, CompressionTypes, AclResourceTypes, AclOperationTypes, AclPermissionTypes, ResourcePatternTypes,
  ConfigResourceTypes } = require('kafkajs')

const address = process.argv[2]
const kafka = new Kafka({ brokers: [address], clientId: 'matrix', logLevel: logLevel.NOTHING, retry: { initialRetryTime: 50, retries: 20 } })
const admin = kafka.admin()
const values = [...Array(10).keys()].map(n => `v${n}`)
const lately = String(Date.now() - 60000) // records that are old may be gone before they are read
const PATIENCE = 40000 // ms for a feature

const check = (right, what) => { if (!right) throw new Error(JSON.stringify(what)) }
const wait = ms => new Promise(done => setTimeout(done, ms))
const soon = async holds => {
  for (const end = Date.now() + 20000; ; await wait(100)) {
    if (await holds()) return
    check(Date.now() < end, 'not in force')
  }
}
const there = topic => admin.describeConfigs({ resources: [{ type: ConfigResourceTypes.TOPIC, name: topic }] })
async function topicOf (topic, numPartitions = 1, configEntries = []) {
  await admin.createTopics({ topics: [{ topic, numPartitions, replicationFactor: 1, configEntries }], waitForLeaders: false })
  await soon(() => there(topic).then(() => true, () => false)) // a real broker follows its controller a little later
}

async function send (topic, settings = {}, options = {}) {
  const producer = kafka.producer(settings)
  await producer.connect()
  for (const value of values) await producer.send({ topic, messages: [{ value }], ...options })
  await producer.disconnect()
}

async function filled (topic, settings, options) {
  await topicOf(topic)
  await send(topic, settings, options)
}

// So many records of a topic; none wanted: what comes in a second.
async function read (topic, wanted, settings = {}) {
  const found = []
  const consumer = kafka.consumer({ groupId: `${topic}-reader-${Math.random()}`, maxWaitTimeInMs: 200, ...settings })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({ eachMessage: async ({ message }) => { found.push(message) } })
  for (const end = Date.now() + (wanted ? 30000 : 2000); Date.now() < end && found.length < (wanted || 1);) await wait(50)
  await consumer.disconnect()
  check(found.length === wanted, `${found.length} records`)
  return found
}

const produced = (settings, options) => async topic => {
  await filled(topic, settings, options)
  await read(topic, 10)
}

async function begun (topic) {
  const producer = kafka.producer({ transactionalId: topic, maxInFlightRequests: 1, idempotent: true })
  await producer.connect()
  const transaction = await producer.transaction()
  await transaction.send({ topic, messages: values.map(value => ({ value })) })
  return [producer, transaction]
}

// Two members share four partitions; one leaves, the other has them all.
async function group (topic) {
  await topicOf(topic, 4)
  const sizes = [[], []]
  const members = []
  for (const each of sizes) {
    const member = kafka.consumer({ groupId: topic, heartbeatInterval: 200, maxWaitTimeInMs: 200, rebalanceTimeout: 10000 })
    member.on(member.events.GROUP_JOIN, ({ payload }) => each.push((payload.memberAssignment[topic] || []).length))
    await member.connect()
    await member.subscribe({ topic, fromBeginning: true })
    await member.run({ eachMessage: async () => {} })
    members.push(member)
  }
  await soon(() => sizes.every(each => each.at(-1) === 2))
  await members[1].disconnect()
  await soon(() => sizes[0].at(-1) === 4)
  await members[0].disconnect()
}

// A group that read ten records and left.
async function left (topic) {
  await filled(topic)
  await read(topic, 10, { groupId: topic })
}

const features = {
  produce: produced({}, { acks: 1 }),
  'produce-acks-0': produced({}, { acks: 0 }),
  'produce-idempotent': produced({ idempotent: true, maxInFlightRequests: 1 }, { acks: -1 }),
  'produce-gzip': produced({}, { compression: CompressionTypes.GZIP }),
  'produce-headers': async topic => {
    await topicOf(topic)
    const producer = kafka.producer()
    await producer.connect()
    await producer.send({ topic, messages: [{ key: 'k', value: null, headers: { h: 'x' }, timestamp: lately }] })
    await producer.disconnect()
    const [found] = await read(topic, 1)
    check(found.headers.h.toString() === 'x' && found.timestamp === lately && found.value === null, found)
  },
  'transaction-commit': async topic => {
    await topicOf(topic)
    const [producer, transaction] = await begun(topic)
    await transaction.commit()
    await read(topic, 10)
    await producer.disconnect()
  },
  'transaction-abort': async topic => {
    await topicOf(topic)
    const [producer, transaction] = await begun(topic)
    await transaction.abort()
    await read(topic, 0)
    await read(topic, 10, { readUncommitted: true })
    await producer.disconnect()
  },
  'transaction-offsets': async topic => {
    await topicOf(topic)
    const [producer, transaction] = await begun(topic)
    await transaction.sendOffsets({ consumerGroupId: topic, topics: [{ topic, partitions: [{ partition: 0, offset: '10' }] }] })
    await transaction.commit()
    await soon(async () => (await admin.fetchOffsets({ groupId: topic, topics: [topic] }))[0].partitions[0].offset === '10')
    await producer.disconnect()
  },
  'consume-pattern': async topic => {
    await filled(topic)
    const found = []
    const consumer = kafka.consumer({ groupId: topic, maxWaitTimeInMs: 200 })
    await consumer.connect()
    await consumer.subscribe({ topic: new RegExp(`${topic}.*`), fromBeginning: true })
    await consumer.run({ eachMessage: async ({ message }) => { found.push(message) } })
    await soon(() => found.length === 10)
    await consumer.disconnect()
  },
  'group-classic': group,
  topics: async topic => {
    await topicOf(topic, 2, [{ name: 'max.message.bytes', value: '2000' }])
    await admin.createPartitions({ topicPartitions: [{ topic, count: 3 }] })
    await soon(async () => (await admin.fetchTopicMetadata({ topics: [topic] })).topics[0].partitions.length === 3)
    check((await admin.listTopics()).includes(topic), 'not listed')
    await admin.deleteTopics({ topics: [topic] })
  },
  'configs-alter-all': async topic => {
    await topicOf(topic)
    const resource = { type: ConfigResourceTypes.TOPIC, name: topic }
    await admin.alterConfigs({ resources: [{ ...resource, configEntries: [{ name: 'retention.ms', value: '1234567' }] }] })
    await soon(async () => JSON.stringify(await admin.describeConfigs({ resources: [resource] })).includes('1234567'))
  },
  'records-delete': async topic => {
    await filled(topic)
    const fresh = kafka.admin() // the other's view of the topics is old
    await fresh.connect()
    await fresh.fetchTopicOffsets(topic)
    await fresh.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '4' }] })
    await fresh.disconnect()
    const [found] = await admin.fetchTopicOffsets(topic)
    check(found.low === '4' && found.high === '10', found)
  },
  'offsets-by-time': async topic => {
    await filled(topic)
    const [found] = await admin.fetchTopicOffsetsByTimestamp(topic, 1)
    check(found.offset === '0', found)
  },
  'replicas-reassign': async topic => {
    await topicOf(topic)
    const node = (await admin.describeCluster()).brokers[0].nodeId
    await admin.alterPartitionReassignments({ topics: [{ topic, partitionAssignment: [{ partition: 0, replicas: [node] }] }] })
    await admin.listPartitionReassignments({})
  },
  groups: async topic => {
    await left(topic)
    check((await admin.listGroups()).groups.some(each => each.groupId === topic), 'not listed')
    check((await admin.describeGroups([topic])).groups[0].state === 'Empty', 'not empty')
    await admin.setOffsets({ groupId: topic, topics: undefined, topic, partitions: [{ partition: 0, offset: '3' }] })
    check((await admin.fetchOffsets({ groupId: topic, topics: [topic] }))[0].partitions[0].offset === '3', 'another offset')
    await admin.resetOffsets({ groupId: topic, topic, earliest: true })
    await admin.deleteGroups([topic])
  },
  acls: async topic => {
    const acl = { resourceType: AclResourceTypes.TOPIC, resourceName: topic, resourcePatternType: ResourcePatternTypes.LITERAL,
      principal: 'User:nobody', host: '*', operation: AclOperationTypes.READ, permissionType: AclPermissionTypes.ALLOW }
    await admin.createAcls({ acl: [acl] })
    await soon(async () => (await admin.describeAcls(acl)).resources.length === 1)
    check((await admin.deleteAcls({ filters: [acl] })).filterResponses[0].matchingAcls.length === 1, 'not deleted')
  },
  'cluster-describe': async () => check((await admin.describeCluster()).clusterId, 'no id')
}

async function main () {
  await admin.connect()
  for (const [name, feature] of Object.entries(features)) {
    try {
      const late = wait(PATIENCE).then(() => { throw new Error(`not done in ${PATIENCE} ms`) })
      await Promise.race([feature(`kafkajs-${name}`), late])
      console.log(`ok ${name}`)
    } catch (wrong) {
      console.log(`no ${name} ${`${wrong.message} ${JSON.stringify(wrong)}`.replaceAll('\n', ' ')}`)
    }
  }
}

main().then(() => process.exit(0), wrong => { console.log(`no connect ${wrong.message}`); process.exit(1) })
