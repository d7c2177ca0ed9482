"""The REST interface over real HTTP: paths, codes and shapes."""

from __future__ import annotations

import json
import socket

import httpx
import pytest

from ksql.core.error_table import REGISTRY_PORT_IN_USE
from ksql.registry.rest import RegistryServer
from ksql.registry.store import SchemaStore
from ksql.registry.subjects import Subjects
from tests.unit.registry.memorylog import MemoryLog

A = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
B = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"int"}]}'
MEDIA = {"content-type": "application/vnd.schemaregistry.v1+json"}


class Api:
    def __init__(self, url):
        # no certificates to load; the machine may be busy
        self.client = httpx.Client(base_url=url, headers=MEDIA, verify=False, timeout=60)

    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body)
        answer = self.client.request(method, path, content=data)
        if answer.is_error:
            document = answer.json()
            assert answer.headers["content-type"] == MEDIA["content-type"]
            assert set(document) == {"error_code", "message"}
            code = document["error_code"]
            assert (code if code < 1000 else code // 100) == answer.status_code
            return code
        return answer.json()

    def get(self, path):
        return self.ask("GET", path)

    def post(self, path, schema, **more):
        return self.ask("POST", path, {"schema": schema, **more})


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    directory = tmp_path_factory.mktemp("registry")
    store = SchemaStore(MemoryLog())
    server = RegistryServer(Subjects(store), "127.0.0.1", 0, directory / "port")
    yield server.start()
    server.stop()
    store.close()


@pytest.fixture
def api(url):
    api = Api(url)
    yield api
    api.ask("DELETE", "/config")
    for subject in api.get("/subjects"):
        api.ask("DELETE", f"/subjects/{subject.replace('/', '%2F')}")
    for subject in api.get("/subjects?deleted=true"):
        api.ask("DELETE", f"/subjects/{subject.replace('/', '%2F')}?permanent=true")
    api.client.close()


def test_root_types_contexts(api):
    assert api.get("/") == {}
    assert api.get("/schemas/types") == ["JSON", "PROTOBUF", "AVRO"]
    assert api.get("/contexts") == ["."]


def test_a_version_in_all_its_shapes(api):
    entry = api.post("/subjects/s-value/versions", A)
    id_, guid, version = entry["id"], entry["guid"], entry["version"]
    place = {"subject": "s-value", "version": version}
    whole = {**place, "id": id_, "guid": guid, "schema": A}
    assert entry == whole
    assert api.post("/subjects/s-value", A) == whole
    for name in ("latest", "-1", str(version)):
        assert api.get(f"/subjects/s-value/versions/{name}") == whole
        assert api.get(f"/subjects/s-value/versions/{name}/schema") == json.loads(A)
    assert api.get("/schemas") == [whole]
    assert api.get("/subjects") == ["s-value"]
    assert api.get("/subjects?subjectPrefix=x") == []
    assert api.get("/subjects/s-value/versions") == [version]
    assert api.get(f"/subjects/s-value/versions/{version}/referencedby") == []
    assert api.get(f"/schemas/ids/{id_}") == {"guid": guid, "schema": A}
    assert api.get(f"/schemas/ids/{id_}?fetchMaxId=true")["maxId"] >= id_
    assert api.get(f"/schemas/guids/{guid}") == {"guid": guid, "schema": A}
    assert api.get(f"/schemas/ids/{id_}/schema") == json.loads(A)
    assert api.get(f"/schemas/ids/{id_}/subjects") == ["s-value"]
    assert api.get(f"/schemas/ids/{id_}/versions") == [place]
    assert api.ask("DELETE", "/subjects/s-value/versions/latest") == version
    assert api.get("/subjects/s-value/versions?deleted=true") == [version]


def test_a_kind_other_than_avro_is_named(api):
    entry = api.post("/subjects/j/versions", '{"type": "string"}', schemaType="JSON")
    assert (entry["schemaType"], entry["schema"]) == ("JSON", '{"type":"string"}')
    text = 'syntax = "proto3"; message M { int32 a = 1; }'
    entry = api.post("/subjects/p/versions", text, schemaType="PROTOBUF")
    body = api.get(f"/schemas/ids/{entry['id']}?format=serialized")
    again = api.post("/subjects/p/versions", body["schema"], schemaType="PROTOBUF")
    assert body["schemaType"] == "PROTOBUF"
    assert "message M" in again["schema"]
    latest = api.get("/subjects/p/versions/1?format=serialized")
    assert latest == 40402 or latest["schema"] == body["schema"]


def test_a_name_may_have_a_slash(api):
    assert api.post("/subjects/a%2Fb.proto/versions", A)["subject"] == "a/b.proto"
    assert len(api.get("/subjects/a%2Fb.proto/versions")) == 1
    assert api.post("/subjects/:.:c/versions", A)["subject"] == "c"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("GET", "/subjects/none/versions", None, 40401),
        ("GET", "/subjects/none/versions/1", None, 40401),
        ("GET", "/subjects/s/versions/9", None, 40402),
        ("GET", "/subjects/s/versions/0", None, 42202),
        ("GET", "/subjects/s/versions/x", None, 42202),
        ("GET", "/subjects/s/versions/2147483648", None, 42202),
        ("GET", "/schemas/ids/999999", None, 40403),
        ("GET", "/schemas/ids/x", None, 422),
        ("GET", f"/schemas/ids/{10**30}", None, 40403),
        ("GET", "/schemas/ids/0/versions", None, 40403),
        ("GET", "/subjects/s/versions/" + "9" * 5000, None, 42202),
        ("POST", "/subjects/s/versions", {"schema": A, "id": 1 << 40}, 422),
        ("POST", "/subjects/s", {"schema": B}, 40403),
        ("POST", "/subjects/none", {"schema": A}, 40401),
        ("POST", "/subjects/s/versions", {"schema": B}, 409),
        ("POST", "/subjects/s/versions", {"schema": "{"}, 42201),
        ("POST", "/subjects/s/versions", {"schema": ""}, 42201),
        ("POST", "/subjects/s/versions", {}, 42201),
        ("POST", "/subjects/s/versions", {"schema": A, "schemaType": "XML"}, 42201),
        ("POST", "/subjects/s/versions", {"schema": A, "id": 5}, None),
        ("POST", "/subjects/s/versions", {"schema": B, "id": 5}, 42205),
        ("POST", "/subjects/s/versions", {"schema": A, "nothing": 5}, 422),
        ("POST", "/subjects/s/versions", {"schema": A, "metadata": {"tags": {"a": 1}}}, 422),
        ("POST", "/subjects/:.other:s/versions", {"schema": A}, 422),
        ("POST", "/subjects/s/versions", [], 422),
        ("DELETE", "/subjects/none", None, 40401),
        ("DELETE", "/subjects/s?permanent=true", None, 40405),
        ("DELETE", "/subjects/s/versions/latest?permanent=true", None, 40407),
        ("GET", "/config/s", None, 40408),
        ("DELETE", "/config/s", None, 40401),
        ("PUT", "/config", {"compatibility": "SOMEHOW"}, 42203),
        ("PUT", "/config", {"compatibilityGroup": "g"}, 422),
        ("GET", "/mode/s", None, 40409),
        ("PUT", "/mode", {"mode": "SOMEHOW"}, 42204),
        ("PUT", "/mode/s", {"mode": "SOMEHOW"}, 42204),
        ("DELETE", "/mode", None, 405),
        ("GET", "/config/:.other:s", None, 422),
        ("PUT", "/mode/s", {"mode": "IMPORT"}, 42205),
        ("GET", "/nowhere", None, 404),
        ("PATCH", "/subjects", None, 405),
    ],
)
def test_refused_requests(api, method, path, body, code):
    api.post("/subjects/s/versions", A)
    if code is None:  # an id is of no use for what is registered already
        assert isinstance(api.ask(method, path, body), int | dict)
    else:
        assert api.ask(method, path, body) == code


def test_a_broken_body_is_reported(api):
    answer = api.client.post("/subjects/s/versions", content="{")
    assert (answer.status_code, answer.json()["error_code"]) == (400, 400)


def test_deleting_twice(api):
    api.post("/subjects/s/versions", A)
    assert len(api.ask("DELETE", "/subjects/s")) == 1
    assert api.ask("DELETE", "/subjects/s") == 40404
    version = api.get("/subjects/s/versions?deletedOnly=true")[0]
    assert api.ask("DELETE", f"/subjects/s/versions/{version}") == 40406
    assert api.ask("DELETE", f"/subjects/s/versions/{version}?permanent=true") == version


def test_imported_ids_stay(api):
    inner = api.post("/subjects/i/versions", A)
    reference = {"name": "R", "subject": "i", "version": inner["version"]}
    outer = '{"type":"array","items":"R"}'
    entry = api.post("/subjects/o/versions", outer, references=[reference])
    assert entry["references"] == [reference]
    assert entry["schema"] == outer
    path = f"/subjects/i/versions/{inner['version']}"
    assert api.get(f"{path}/referencedby") == [entry["id"]]
    assert api.ask("DELETE", path) == 42206
    assert api.ask("DELETE", "/subjects/i") == 42206
    api.ask("DELETE", "/subjects/o")


def test_compatibility_is_tried_without_registering(api):
    version = api.post("/subjects/s/versions", A)["version"]
    for path in ("", f"/{version}", "/latest"):
        body = api.post(f"/compatibility/subjects/s/versions{path}?verbose=true", B)
        assert not body["is_compatible"]
        assert "path /fields/1" in body["messages"][0]
        assert "{compatibility: 'BACKWARD'}" in body["messages"]
    assert api.post("/compatibility/subjects/s/versions", A) == {"is_compatible": True}
    assert api.post("/compatibility/subjects/new/versions/latest", A) == {"is_compatible": True}
    assert api.post("/compatibility/subjects/s/versions/99", A) == 40402
    assert api.ask("PUT", "/config/s", {"compatibility": "none"}) == {"compatibility": "NONE"}
    assert api.get("/config/s") == {"compatibilityLevel": "NONE"}
    assert api.post("/compatibility/subjects/s/versions", B) == {"is_compatible": True}
    assert api.ask("DELETE", "/config/s") == {"compatibility": "NONE"}
    assert api.get("/config/s?defaultToGlobal=true")["compatibilityLevel"] == "BACKWARD"


def test_a_subject_is_named_by_the_path_alone(api):
    api.ask("PUT", "/config/s", {"compatibility": "none"})
    assert api.get("/config?subject=s")["compatibilityLevel"] == "BACKWARD"
    assert api.ask("PUT", "/mode?subject=s", {"mode": "READWRITE"}) == {"mode": "READWRITE"}
    assert api.get("/config/:.:s") == {"compatibilityLevel": "NONE"}
    assert api.ask("DELETE", "/config/s") == {"compatibility": "NONE"}


def test_modes(api):
    assert api.get("/mode") == {"mode": "READWRITE"}
    assert api.ask("PUT", "/mode/s", {"mode": "readonly"}) == {"mode": "READONLY"}
    assert api.get("/mode/s") == {"mode": "READONLY"}
    assert api.post("/subjects/s/versions", A) == 42205
    assert api.ask("DELETE", "/mode/s") == {"mode": "READONLY"}
    assert api.get("/mode/s?defaultToGlobal=true") == {"mode": "READWRITE"}


def test_lists_come_in_pages(api):
    for name in "abc":
        api.post(f"/subjects/{name}/versions", A)
    assert api.get("/subjects?offset=1&limit=1") == ["b"]
    assert [one["subject"] for one in api.get("/schemas?offset=1&latestOnly=true")] == ["b", "c"]


def test_the_port_is_kept_if_it_is_free(tmp_path):
    subjects = Subjects(SchemaStore(MemoryLog()))

    def server(port=0):
        return RegistryServer(subjects, "127.0.0.1", port, tmp_path / "port")

    first = server()
    url = first.start()
    first.stop()
    first.stop()
    second = server()
    assert second.start() == url
    third = server()
    assert third.start() != url
    with pytest.raises(REGISTRY_PORT_IN_USE.base, match=REGISTRY_PORT_IN_USE.pattern):
        server(int(url.rpartition(":")[2])).start()
    second.stop()
    third.stop()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        (tmp_path / "port").write_text(str(taken.getsockname()[1]))
        last = server()
        last.start()
        last.stop()
