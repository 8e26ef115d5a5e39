// A producer, a member of a group and an admin client of kafkajs, against the address in the first argument. Prints how
// many records came, the group's state and how many members it has.
const { Kafka, logLevel } = require('kafkajs')

const kafka = new Kafka({ clientId: 'js', brokers: [process.argv[2]], logLevel: logLevel.ERROR })

async function main() {
  const admin = kafka.admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic: 't', numPartitions: 2 }] })
  const producer = kafka.producer({ idempotent: true })
  await producer.connect()
  const messages = Array.from({ length: 100 }, (_, i) => ({ key: String(i), value: 'v' + i }))
  await producer.send({ topic: 't', messages })
  const consumer = kafka.consumer({ groupId: 'g', sessionTimeout: 6000, heartbeatInterval: 500, maxWaitTimeInMs: 200 })
  await consumer.connect()
  await consumer.subscribe({ topic: 't', fromBeginning: true })
  let got = 0
  await new Promise(done => consumer.run({ eachMessage: async () => { if (++got === 100) done() } }))
  const { groups: [group] } = await admin.describeGroups(['g'])
  console.log(got, group.state, group.members.length)
  for (const one of [consumer, producer, admin]) await one.disconnect()
}

main().catch(error => { console.error(error); process.exit(1) })
